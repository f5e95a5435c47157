"""Starvation: the longest that any of several competing jobs had to wait."""

from __future__ import annotations

from collections.abc import Sequence

from blklab.analysis.metrics._commands import sections_of
from blklab.analysis.metrics._shares import count_of_processes
from blklab.quantities.units import NS_PER_US
from blklab.records.samples import JobSample

NAME = "longest_wait"
UNIT = "us"
BETTER = "lower"
DESCRIPTION = (
    "longest that any read, write or sync call of competing jobs took; a job that completed none waited "
    "for its whole run"
)
FEWEST_IOS = 3_000


def compute(jobs: Sequence[JobSample]) -> float | None:
    """Exact maximum over all jobs; None if only one process is measured."""
    jobs = sections_of(jobs)
    if count_of_processes(jobs) < 2:
        return None
    waits_ns = []
    for job in jobs:
        completed = [entry.latency for entry in job.directions if entry.latency.count]
        longest_ns = max((latency.max_ns for latency in completed), default=job.runtime_ns)
        waits_ns.append(longest_ns)
    longest = max(waits_ns)
    return longest / NS_PER_US if longest else None
