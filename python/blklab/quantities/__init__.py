"""Quantities as text: parsing units, and formatting values for people."""
