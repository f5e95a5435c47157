"""Processes and tasks: process groups, I/O counters and priorities, blklab's own signals, system programs."""
