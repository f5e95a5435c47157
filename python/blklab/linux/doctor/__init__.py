"""Findings about this machine, for `blklab doctor`: missing tools and settings that skew comparisons."""
