"""The worst latency."""

from __future__ import annotations

from collections.abc import Sequence

from blklab.analysis.metrics._latency import data_latencies
from blklab.quantities.units import NS_PER_US
from blklab.records.samples import JobSample

NAME = "latency_max"
UNIT = "us"
BETTER = "lower"
DESCRIPTION = "longest time that any read or write took"
FEWEST_IOS = 3_000


def compute(jobs: Sequence[JobSample]) -> float | None:
    """Exact maximum over all reads and writes."""
    latencies = data_latencies(jobs)
    return latencies.max_ns / NS_PER_US if latencies.count else None
