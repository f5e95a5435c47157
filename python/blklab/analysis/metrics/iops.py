"""I/Os per second."""

from __future__ import annotations

from collections.abc import Sequence

from blklab.analysis.metrics._rate import summed_rate
from blklab.records.samples import JobSample

NAME = "iops"
UNIT = "IO/s"
BETTER = "higher"
DESCRIPTION = "reads and writes completed per second, summed over the measured sections"


def compute(jobs: Sequence[JobSample]) -> float | None:
    """Sums each section's I/Os over its own run time."""
    return summed_rate(jobs, lambda entry: entry.ios)
