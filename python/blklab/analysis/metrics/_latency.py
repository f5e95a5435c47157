"""The latencies of a run's measured sections as one histogram, shared by the latency metrics."""

from __future__ import annotations

from collections.abc import Sequence

from blklab.quantities.units import NS_PER_US
from blklab.records.samples import JobSample, LatencyHistogram


def data_latencies(jobs: Sequence[JobSample]) -> LatencyHistogram:
    """Latencies of all reads and writes."""
    return LatencyHistogram.merged(entry.latency for job in jobs for entry in job.data_directions())


def sync_latencies(jobs: Sequence[JobSample]) -> LatencyHistogram:
    """Latencies of all fsync and fdatasync calls."""
    return LatencyHistogram.merged(
        entry.latency for job in jobs for entry in job.directions if entry.direction == "sync"
    )


def percentile_us(latencies: LatencyHistogram, fraction: float) -> float | None:
    """A percentile in microseconds."""
    value_ns = latencies.percentile_ns(fraction)
    return None if value_ns is None else value_ns / NS_PER_US
