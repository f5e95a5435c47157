"""Rates, shares and ratios of jobs as a part of the document."""

from __future__ import annotations

from blklab.analysis.job_shares import job_shares
from blklab.records.experiment import ExperimentRecord
from blklab.report.documents.parts import Part


class JobRatePart(Part):
    """A job's rate under a scheduler, and its share of the bytes of all jobs; means over runs."""

    job: str
    bytes_per_second: float
    share: float


class JobRatioPart(Part):
    """How many times the first job's bytes are the second's, with the interval of the mean over runs."""

    first: str
    second: str
    ratio: float
    low: float | None
    high: float | None


class JobSharesPart(Part):
    """The jobs of a workload under one scheduler."""

    workload: str
    scheduler: str
    rates: list[JobRatePart]
    ratios: list[JobRatioPart]


def job_shares_parts(record: ExperimentRecord) -> list[JobSharesPart]:
    """A part for each workload of two jobs or more and each scheduler."""
    return [
        JobSharesPart(
            workload=found.workload,
            scheduler=found.scheduler,
            rates=[JobRatePart(**vars(rate)) for rate in found.rates],
            ratios=[JobRatioPart(**vars(ratio)) for ratio in found.ratios],
        )
        for found in job_shares(record)
    ]
