"""Directories that root makes where others may rename: held by descriptor, mounted out of their reach."""
