"""Computes from samples the shares that two processes got of the disk."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from blklab.labs.studies.replication.samples import moved_bytes
from blklab.quantities.units import NS_PER_SECOND
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import JobSample, RunSample


@dataclass(frozen=True)
class Seconds:
    """Rates of both processes in each second (10^6 bytes/s), while both were running."""

    first: list[float]
    second: list[float]

    @property
    def ratios(self) -> list[float]:
        """First process over second in each second."""
        return [one / other for one, other in zip(self.first, self.second, strict=True) if one and other]

    @property
    def irregularity(self) -> float | None:
        """Coefficient of variation of the totals; None with fewer than two seconds."""
        totals = np.add(self.first, self.second)
        return None if len(totals) < 2 else float(totals.std(ddof=1) / totals.mean())


def ratios(record: ExperimentRecord, scheduler: str, workload: str | None = None) -> list[float]:
    """First process over second by bytes in each run; for runs of a fixed time."""
    found = []
    for sample in record.successes(scheduler, workload):
        first, second = (moved_bytes(job) for job in sample.jobs)
        if first and second:
            found.append(first / second)
    return found


def first_share(record: ExperimentRecord, scheduler: str, workload: str) -> float | None:
    """Share of the first process in the bytes of both over all runs; None if no byte was moved."""
    moved = [[moved_bytes(job) for job in one.jobs] for one in record.successes(scheduler, workload)]
    whole = sum(sum(pair) for pair in moved)
    return sum(pair[0] for pair in moved) / whole if whole else None


def seconds_of(sample: RunSample) -> Seconds:
    """Rates in each second; shorter windows are averaged into whole seconds."""
    series = [_by_seconds(job) for job in sample.jobs]
    length = min(len(course) for course in series)
    return Seconds(series[0][:length], series[1][:length])


def _by_seconds(job: JobSample) -> list[float]:
    if job.rates is None:
        return []
    together = max(1, round(NS_PER_SECOND / job.rates.window_ns))
    whole = len(job.rates.bytes_per_second) // together
    values = np.array(job.rates.bytes_per_second[: whole * together]).reshape(whole, together)
    return [float(value) / 1e6 for value in values.mean(axis=1)]
