"""Mean latency."""

from __future__ import annotations

from collections.abc import Sequence

from blklab.analysis.metrics._latency import data_latencies
from blklab.quantities.units import NS_PER_US
from blklab.records.samples import JobSample

NAME = "latency_mean"
UNIT = "us"
BETTER = "lower"
DESCRIPTION = "mean time from the submission of a read or write to its completion"


def compute(jobs: Sequence[JobSample]) -> float | None:
    """Exact mean over all reads and writes."""
    mean_ns = data_latencies(jobs).mean_ns
    return None if mean_ns is None else mean_ns / NS_PER_US
