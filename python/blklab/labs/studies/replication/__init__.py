"""Runs published experiments again and compares the results with the published values."""
