"""Carrying out experiments: the pipeline, its blocks, and racing."""
