"""Errors of the simulator in one cell, and their distribution over many cells.

A relative error is (simulator - kernel) / kernel. Each job of a cell contributes one observation of
throughput and of the mean and 99th percentile of latency. Each cell with several jobs contributes one
observation of the shares: the job whose share of the bytes differs most, in percentage points.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from blklab.analysis.statistics.percentile import percentile
from blklab.quantities.units import NS_PER_SECOND
from blklab.records.samples import JobSample, LatencyHistogram

ErrorMetric = Literal["throughput", "share", "mean_latency", "p99_latency"]

ERROR_METRICS: tuple[ErrorMetric, ...] = ("throughput", "share", "mean_latency", "p99_latency")

LEAST_IOS = 100
"""Jobs with fewer I/Os on the kernel are compared by share alone: one I/O would be one percent or more."""
LEAST_IOS_P99 = 500
"""With fewer I/Os, fewer than five lie above the 99th percentile."""


class _FrozenModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class JobValues(_FrozenModel):
    """The measured values of a job on the simulator or on the kernel."""

    ios: int
    bytes_per_second: float
    mean_latency_ns: float | None
    p99_latency_ns: float | None


class JobComparison(_FrozenModel):
    """One job of a cell on the simulator and on the kernel."""

    job: str
    simulator: JobValues
    kernel: JobValues


class CellResult(_FrozenModel):
    """One cell on the simulator and on the kernel."""

    cell: str
    jobs: list[JobComparison] = []
    failure: str | None = None
    """Reason why there is no comparison; None if there is one."""

    def errors(self, quantity: ErrorMetric) -> list[float]:
        """Signed errors as fractions; for shares 0.01 is one percentage point."""
        if quantity == "share":
            return _share_errors(self.jobs)
        return [error for job in self.jobs if (error := _error(job, quantity)) is not None]

    def worst(self, quantity: ErrorMetric) -> float | None:
        """The signed error of the largest size."""
        return max(self.errors(quantity), key=abs, default=None)


class Spread(_FrozenModel):
    """Distribution of the absolute errors of one metric."""

    quantity: ErrorMetric
    observations: int
    median: float
    percentile_95: float
    worst: float
    worst_cell: str


class Limit(_FrozenModel):
    """Limits on the errors of one metric."""

    quantity: ErrorMetric
    median: float | None
    percentile_95: float


LIMITS: tuple[Limit, ...] = (
    Limit(quantity="throughput", median=0.02, percentile_95=0.08),
    Limit(quantity="share", median=None, percentile_95=0.03),
    Limit(quantity="mean_latency", median=0.02, percentile_95=0.08),
    Limit(quantity="p99_latency", median=0.05, percentile_95=0.20),
)
"""The simulator's limits; mean latency has those of throughput, to which Little's law ties it."""


def limit_of(quantity: ErrorMetric) -> Limit:
    """The limits of one metric."""
    return next(limit for limit in LIMITS if limit.quantity == quantity)


def compare_jobs(cell: str, simulator: Sequence[JobSample], kernel: Sequence[JobSample]) -> CellResult:
    """Pairs the jobs of simulator and kernel by name."""
    by_name: Mapping[str, JobSample] = {job.name: job for job in kernel}
    missing = [job.name for job in simulator if job.name not in by_name]
    if missing or len(simulator) != len(kernel):
        return CellResult(cell=cell, failure=f"the kernel's answer has no job {', '.join(missing) or '?'}")
    return CellResult(
        cell=cell,
        jobs=[
            JobComparison(job=job.name, simulator=_values(job), kernel=_values(by_name[job.name]))
            for job in simulator
        ],
    )


def spread(quantity: ErrorMetric, results: Iterable[CellResult]) -> Spread | None:
    """Distribution of one metric's errors over many cells; None if no cell has one."""
    sizes = [(abs(error), result.cell) for result in results for error in result.errors(quantity)]
    if not sizes:
        return None
    sizes.sort()
    worst, cell = sizes[-1]
    return Spread(
        quantity=quantity,
        observations=len(sizes),
        median=percentile([size for size, _ in sizes], 0.5),
        percentile_95=percentile([size for size, _ in sizes], 0.95),
        worst=worst,
        worst_cell=cell,
    )


def exceeds(found: Spread) -> bool:
    """Whether the errors exceed the limits of their metric."""
    limit = limit_of(found.quantity)
    return found.percentile_95 > limit.percentile_95 or (
        limit.median is not None and found.median > limit.median
    )


def beyond_limits(result: CellResult) -> list[ErrorMetric]:
    """Metrics whose error in this cell exceeds the 95th-percentile limit."""
    return [
        quantity
        for quantity in ERROR_METRICS
        if (error := result.worst(quantity)) is not None and abs(error) > limit_of(quantity).percentile_95
    ]


def _values(job: JobSample) -> JobValues:
    data = job.data_directions()
    latency = LatencyHistogram.merged(entry.latency for entry in data)
    moved = sum(entry.bytes for entry in data)
    return JobValues(
        ios=sum(entry.ios for entry in data),
        bytes_per_second=moved * NS_PER_SECOND / job.runtime_ns if job.runtime_ns else 0.0,
        mean_latency_ns=latency.mean_ns,
        p99_latency_ns=latency.percentile_ns(0.99),
    )


def _error(job: JobComparison, quantity: ErrorMetric) -> float | None:
    if job.kernel.ios < (LEAST_IOS_P99 if quantity == "p99_latency" else LEAST_IOS):
        return None
    pair = {
        "throughput": (job.simulator.bytes_per_second, job.kernel.bytes_per_second),
        "mean_latency": (job.simulator.mean_latency_ns, job.kernel.mean_latency_ns),
        "p99_latency": (job.simulator.p99_latency_ns, job.kernel.p99_latency_ns),
    }[quantity]
    simulator, kernel = pair
    # A job that the simulator starves completely has no latency there; its throughput shows the error.
    return None if simulator is None or not kernel else (simulator - kernel) / kernel


def _share_errors(jobs: Sequence[JobComparison]) -> list[float]:
    totals = [sum(getattr(job, world).bytes_per_second for job in jobs) for world in ("simulator", "kernel")]
    if len(jobs) < 2 or not all(totals):
        return []
    differences = [
        job.simulator.bytes_per_second / totals[0] - job.kernel.bytes_per_second / totals[1] for job in jobs
    ]
    return [max(differences, key=abs)]
