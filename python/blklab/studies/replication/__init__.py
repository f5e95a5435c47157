"""Carrying studies out, and the pages that show what they found."""
