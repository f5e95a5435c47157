"""The time that a command takes."""

from __future__ import annotations

from collections.abc import Sequence

from blklab.analysis.metrics._commands import summed_over_commands
from blklab.quantities.units import NS_PER_US
from blklab.records.samples import JobSample

NAME = "wall_time"
UNIT = "us"
BETTER = "lower"
DESCRIPTION = "time from the start of a command to the end of its first process"


def compute(jobs: Sequence[JobSample]) -> float | None:
    """Time by the clock; None for job files."""
    return summed_over_commands(jobs, lambda job: job.runtime_ns / NS_PER_US)
