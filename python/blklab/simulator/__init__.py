"""Simulations, for programs and for the `sim:` backend, and their timelines."""
