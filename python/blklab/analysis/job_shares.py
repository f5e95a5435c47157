"""Rates of each job under each scheduler, their shares, and the ratio of each two jobs.

A ratio is taken within each run, where both jobs had the same conditions, and then averaged on the scale of
logarithms. Slots of a switchback depend on each other, so their ratios have no interval here.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from blklab.analysis.statistics.intervals import geometric_mean_interval
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import JobSample, RunSample

_NS_PER_S = 1e9


@dataclass(frozen=True)
class JobRate:
    """A job's part of what a scheduler delivered."""

    job: str
    bytes_per_second: float
    """Mean over runs, so that the jobs' rates add up to the workload's."""
    share: float
    """Of the bytes of all jobs; mean over runs."""


@dataclass(frozen=True)
class JobRatio:
    """How many times the first job's bytes are the second's."""

    first: str
    second: str
    ratio: float
    low: float | None
    high: float | None
    """None with a single run, and for slots."""


@dataclass(frozen=True)
class JobShares:
    """The jobs of a workload under one scheduler."""

    workload: str
    scheduler: str
    rates: list[JobRate]
    ratios: list[JobRatio]
    """Of each two jobs that moved data in every run."""


def job_shares(record: ExperimentRecord) -> list[JobShares]:
    """The jobs under each scheduler, for workloads of two jobs or more, in the experiment's order."""
    samples: dict[tuple[str, str], list[RunSample]] = {}
    for sample in record.samples:
        if sample.status == "ok" and len(sample.jobs) > 1:
            samples.setdefault((sample.cell.workload, sample.cell.scheduler), []).append(sample)
    order = [
        (workload.name, choice.label)
        for workload in record.spec.workloads
        for choice in record.spec.schedulers
    ]
    return [
        _shares(workload, scheduler, samples[workload, scheduler], record.spec.confidence)
        for workload, scheduler in order
        if (workload, scheduler) in samples
    ]


def _shares(workload: str, scheduler: str, samples: Sequence[RunSample], confidence: float) -> JobShares:
    names = [job.name for job in samples[0].jobs]
    bytes_of = {name: [_bytes(_named(sample, name)) for sample in samples] for name in names}
    whole = [sum(column) for column in zip(*bytes_of.values(), strict=True)]
    rates = [
        JobRate(
            name,
            statistics.fmean(_rate(_named(sample, name)) for sample in samples),
            statistics.fmean(
                part / total if total else 0.0 for part, total in zip(bytes_of[name], whole, strict=True)
            ),
        )
        for name in names
    ]
    independent = all(sample.slot is None for sample in samples)
    ratios = []
    for first, second in itertools.combinations(names, 2):
        if not (all(bytes_of[first]) and all(bytes_of[second])):
            continue
        values = [one / other for one, other in zip(bytes_of[first], bytes_of[second], strict=True)]
        found = geometric_mean_interval(values, confidence)
        bounds = (found.low, found.high) if independent else (None, None)
        ratios.append(JobRatio(first, second, found.mean, *bounds))
    return JobShares(workload, scheduler, rates, ratios)


def _named(sample: RunSample, name: str) -> JobSample:
    return next(job for job in sample.jobs if job.name == name)


def _bytes(job: JobSample) -> int:
    return sum(direction.bytes for direction in job.data_directions())


def _rate(job: JobSample) -> float:
    return _bytes(job) / (job.runtime_ns / _NS_PER_S) if job.runtime_ns else 0.0
