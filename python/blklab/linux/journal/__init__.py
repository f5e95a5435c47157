"""The journal of changes: written before a setting changes, undone when a run ends or is recovered."""
