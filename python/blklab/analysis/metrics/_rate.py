"""Rates over a run's measured sections, shared by throughput and IOPS."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from blklab.analysis.metrics._commands import sections_of
from blklab.quantities.units import NS_PER_SECOND
from blklab.records.samples import DirectionSample, JobSample


def summed_rate(jobs: Sequence[JobSample], amount: Callable[[DirectionSample], int]) -> float | None:
    """Sums each section's amount over its own run time; None if no section of a job file ran."""
    rates = [
        sum(amount(entry) for entry in job.data_directions()) * NS_PER_SECOND / job.runtime_ns
        for job in sections_of(jobs)
        if job.runtime_ns
    ]
    return sum(rates) if rates else None
