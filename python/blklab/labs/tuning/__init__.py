"""Tuning: settings are searched on a model of the disk and confirmed on the target (`blklab tune`)."""
