"""Explains one simulated run from its timeline: the output of `blklab explain`."""
