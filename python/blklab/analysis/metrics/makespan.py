"""Time until all is done."""

from __future__ import annotations

from collections.abc import Sequence

from blklab.quantities.units import NS_PER_US
from blklab.records.samples import JobSample

NAME = "makespan"
UNIT = "us"
BETTER = "lower"
DESCRIPTION = (
    "time from the start of the measured sections to the end of the last; for replays, and where it decides"
)
OF_LOADS_THAT_END = True


def compute(jobs: Sequence[JobSample]) -> float | None:
    """The longest run time of a section; None if a command is measured, whose wall time counts instead."""
    if any(job.command is not None for job in jobs):
        return None
    longest_ns = max((job.runtime_ns for job in jobs), default=0)
    return longest_ns / NS_PER_US if longest_ns else None
