"""Markdown pages of the documentation with generated parts."""
