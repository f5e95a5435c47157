"""The latency that 99 of 100 fsync or fdatasync calls were faster than."""

from __future__ import annotations

from collections.abc import Sequence

from blklab.analysis.metrics._latency import percentile_us, sync_latencies
from blklab.records.samples import JobSample

NAME = "sync_latency_p99"
UNIT = "us"
BETTER = "lower"
DESCRIPTION = "latency that 99 of 100 fsync or fdatasync calls were faster than"
FEWEST_IOS = 300
COUNTS_SYNCS = True


def compute(jobs: Sequence[JobSample]) -> float | None:
    """Percentile of all sync calls; None for a load without them."""
    return percentile_us(sync_latencies(jobs), 0.99)
