"""Calibration: measures on a host what models need to know of it."""
