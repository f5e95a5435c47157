"""Processes and tasks: groups of them, their I/O counters and priorities, and signals to blklab's own."""
