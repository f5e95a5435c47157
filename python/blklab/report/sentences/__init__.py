"""Findings of the analysis in sentences: one module for each kind of finding."""
