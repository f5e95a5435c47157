"""Simulations for programs and for the `sim:` backend, and the timelines they record."""
