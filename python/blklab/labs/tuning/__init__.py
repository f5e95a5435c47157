"""Tuning: settings are searched on a model of the disk and confirmed on the target (`blklab tune`)."""

DEFAULT_TRIALS = 200
"""Candidates to try on the model."""
