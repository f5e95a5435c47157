"""Metrics that name jobs: ``share:JOB`` of the bytes, and ``ratio:JOB/JOB`` of two jobs' bytes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from blklab.records.samples import JobSample

FEWEST_IOS = 100
SHARE = re.compile(r"share:(.+)")
RATIO = re.compile(r"ratio:([^/]+)/(.+)")
GRAMMAR = "share:JOB, ratio:JOB/JOB"


def jobs_named(name: str) -> tuple[str, ...]:
    """The jobs that a metric names; empty for a metric that names none."""
    found = SHARE.fullmatch(name) or RATIO.fullmatch(name)
    return () if found is None else found.groups()


def describe(name: str) -> tuple[str, str]:
    """Unit and description of such a metric."""
    jobs = jobs_named(name)
    if len(jobs) == 1:
        description = f"share of {jobs[0]} in the bytes of all measured jobs"
        return "of 1", description
    description = f"bytes of {jobs[0]} over those of {jobs[1]}"
    return "to 1", description


def compute(name: str, jobs: Sequence[JobSample]) -> float | None:
    """The share or the ratio in one run; None if a job is missing, or if the divisor moved nothing."""
    moved = {job.name: sum(entry.bytes for entry in job.data_directions()) for job in jobs}
    named = jobs_named(name)
    if any(job not in moved for job in named):
        return None
    divisor = sum(moved.values()) if len(named) == 1 else moved[named[1]]
    return moved[named[0]] / divisor if divisor else None
