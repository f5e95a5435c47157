"""Tortures a guest kernel's schedulers, and says which seed shows a mistake."""
