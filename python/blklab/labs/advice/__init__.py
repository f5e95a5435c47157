"""Advice on a disk's scheduler: from what runs on a machine to the comparison that answers for it."""
