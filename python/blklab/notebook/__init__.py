"""Experiments in notebooks: run and load them, take their results as data frames, see their pictures."""
