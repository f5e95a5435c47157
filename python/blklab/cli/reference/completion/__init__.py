"""Completion scripts for shells, generated from the commands: one file a shell, each with ``script()``."""
