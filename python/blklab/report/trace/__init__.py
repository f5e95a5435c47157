"""What `blklab explain` says of one simulated run, from its timeline."""
