"""The undo journal: written before a setting changes, undone when a run ends or is recovered."""
