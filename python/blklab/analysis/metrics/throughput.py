"""Bytes moved per second."""

from __future__ import annotations

from collections.abc import Sequence

from blklab.analysis.metrics._rate import summed_rate
from blklab.records.samples import JobSample

NAME = "throughput"
UNIT = "B/s"
BETTER = "higher"
DESCRIPTION = "bytes read and written per second, summed over the measured sections"


def compute(jobs: Sequence[JobSample]) -> float | None:
    """Sums each section's bytes over its own run time."""
    return summed_rate(jobs, lambda entry: entry.bytes)
