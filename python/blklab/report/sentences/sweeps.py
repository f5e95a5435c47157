"""Notes on a sweep in sentences."""

from __future__ import annotations

from blklab.analysis.sweep_effects import DefaultLevel, NoCompleteBlock, SweepNote


def sweep_note_text(note: SweepNote) -> str:
    """One note, without a full stop."""
    if isinstance(note, NoCompleteBlock):
        return f"{note.workload}: no block has a figure for every combination"
    if isinstance(note, DefaultLevel):
        return f"{note.tunable} is {note.level} by default"
    return "interactions of more than two tunables are not stated"
