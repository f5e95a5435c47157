"""Bytes moved per second."""

from __future__ import annotations

from collections.abc import Sequence

from blklab.samples import NS_PER_SECOND, JobSample

NAME = "throughput"
UNIT = "B/s"
BETTER = "higher"
DESCRIPTION = "bytes read and written per second, summed over the measured sections"


def compute(jobs: Sequence[JobSample]) -> float | None:
    """Sums each section's bytes over its own run time."""
    rates = [
        sum(entry.bytes for entry in job.data_directions()) * NS_PER_SECOND / job.runtime_ns
        for job in jobs
        if job.runtime_ns
    ]
    return sum(rates) if rates else None
