"""Scratch space for jobs: files or devices, their layout and preconditioning, and the page cache."""
