"""Puts a changed scheduler through its paces in a guest before a module of it runs on this machine."""

SEEDS = 64
"""Seeds of torture, eight of them long."""
