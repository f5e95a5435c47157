"""Scratch space for jobs: files or device blocks, their layout and conditioning, and the page cache."""
