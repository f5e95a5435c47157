"""Compares the simulator with a kernel: the same cells on both, with the same device model and seed."""
