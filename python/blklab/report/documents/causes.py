"""Causes of differences as a part of the document."""

from __future__ import annotations

from collections.abc import Sequence

from blklab.analysis.causes import Cause, CauseKind, Phase
from blklab.report.documents.parts import Part
from blklab.report.sentences.causes import cause_sentence


class CausePart(Part):
    """The reason for which one scheduler is better than another, from a run of each that was observed."""

    workload: str
    better: str
    worse: str
    kind: CauseKind
    focus: str
    """The job whose I/O waits less; empty for all."""
    other: str
    """The job that it waits for; empty for none."""
    better_count: float
    """The counter that the kind is about: a share of the time for `idling` and `idled`; requests for
    `limit`, `order`, `turns`, `slices` and `depth`; nanoseconds for `held` and `processors`; bytes for
    `runs`, `distance` and `merging`."""
    worse_count: float
    phase: Phase | None
    """Where the difference in waiting lies."""
    better_wait_ns: float
    """The mean wait there."""
    worse_wait_ns: float
    text: str

    @property
    def cause(self) -> Cause:
        """The finding itself."""
        return Cause(**{name: value for name, value in self if name != "text"})


def cause_parts(causes: Sequence[Cause]) -> list[CausePart]:
    """A part for each cause."""
    return [CausePart(**vars(cause), text=cause_sentence(cause)) for cause in causes]
