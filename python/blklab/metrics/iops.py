"""I/Os per second."""

from __future__ import annotations

from collections.abc import Sequence

from blklab.samples import NS_PER_SECOND, JobSample

NAME = "iops"
UNIT = "IO/s"
BETTER = "higher"
DESCRIPTION = "reads and writes completed per second, summed over the measured sections"


def compute(jobs: Sequence[JobSample]) -> float | None:
    """Sums each section's I/Os over its own run time."""
    rates = [
        sum(entry.ios for entry in job.data_directions()) * NS_PER_SECOND / job.runtime_ns
        for job in jobs
        if job.runtime_ns
    ]
    return sum(rates) if rates else None
