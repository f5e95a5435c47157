"""Shows where the I/Os of a recording wait: the output of `blklab where`."""
