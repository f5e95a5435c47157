"""The latency that 999 of 1000 reads and writes were faster than."""

from __future__ import annotations

from collections.abc import Sequence

from blklab.analysis.metrics._latency import data_latencies, percentile_us
from blklab.records.samples import JobSample

NAME = "latency_p99_9"
UNIT = "us"
BETTER = "lower"
DESCRIPTION = "latency that 999 of 1000 reads and writes were faster than, from merged histograms"
FEWEST_IOS = 3_000


def compute(jobs: Sequence[JobSample]) -> float | None:
    """Percentile of all reads and writes."""
    return percentile_us(data_latencies(jobs), 0.999)
