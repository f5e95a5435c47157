"""The HTML report: one file that needs no network."""
