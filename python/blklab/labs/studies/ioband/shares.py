"""Computes the groups' shares and latencies from samples and from the published tables."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from blklab.labs.studies.ioband.set_up import GROUPS, PHASES
from blklab.labs.studies.replication.samples import moved_bytes
from blklab.labs.studies.replication.study_folder import StudyFolder
from blklab.quantities.units import NS_PER_SECOND
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import LatencyHistogram, RunSample

THROUGHPUT_TABLE = "tiotest_throughput.csv"
LATENCY_TABLE = "tiotest_latency.csv"
LONG_MS = 2_000
VERY_LONG_MS = 10_000
"""The limits above which tiotest counts a latency."""

Shares = tuple[float, ...]
"""Shares of the groups in order, in percent."""


@dataclass(frozen=True)
class Latencies:
    """A row of tiotest's latency table."""

    average_ms: float
    maximum_ms: float
    over_2s_percent: float
    over_10s_percent: float


def shares_of(amounts: Sequence[float]) -> Shares:
    """Each amount in percent of the sum."""
    whole = sum(amounts)
    return tuple(100 * amount / whole for amount in amounts)


def mean_shares(runs: Iterable[Shares]) -> Shares:
    """Arithmetic mean of each group's share; the means add up to 100 too."""
    return tuple(statistics.fmean(group) for group in zip(*runs, strict=True))


def farthest(shares: Shares, wanted: Shares) -> float:
    """The largest distance of a share from its target, in percentage points, to a thousandth."""
    return round(max(abs(share - other) for share, other in zip(shares, wanted, strict=True)), 3)


def shares_text(shares: Shares) -> str:
    """``10.2/30.3/59.5``."""
    return "/".join(f"{share:.1f}" for share in shares)


def competing_shares(record: ExperimentRecord, scheduler: str | None, workload: str) -> Shares | None:
    """Mean shares of the bytes moved while all groups competed; None without a successful run."""
    runs = []
    for sample in record.successes(scheduler, workload):
        moved = [moved_bytes(job) for job in sample.jobs]
        if any(moved):
            runs.append(shares_of(moved))
    return mean_shares(runs) if runs else None


def phase_rates(sample: RunSample, phase: str) -> list[float]:
    """MB/s of each group in a phase: the group's work over its own time, as tiotest prints it."""
    jobs = {job.name: job for job in sample.jobs}
    groups = [jobs[f"{phase} {group}"] for group in GROUPS]
    return [moved_bytes(job) / job.runtime_ns * NS_PER_SECOND / 1e6 for job in groups]


def phase_latencies(sample: RunSample, phase: str) -> Latencies:
    """Latencies of the operations of all groups in a phase."""
    merged = LatencyHistogram.merged(
        entry.latency
        for job in sample.jobs
        if job.name in {f"{phase} {group}" for group in GROUPS}
        for entry in job.data_directions()
    )
    return Latencies(
        (merged.mean_ns or 0) / 1e6,
        merged.max_ns / 1e6,
        _percent_over(merged, LONG_MS),
        _percent_over(merged, VERY_LONG_MS),
    )


def published_shares(folder: StudyFolder, case: str, phase: str) -> Shares:
    """Shares of the printed rates."""
    return shares_of(folder.values(THROUGHPUT_TABLE, "rate_MBps", test_case=case, phase=phase))


def published_latencies(folder: StudyFolder, case: str, phase: str) -> Latencies:
    """Latencies over the three groups, which did the same number of operations each."""
    columns = {
        name: folder.values(LATENCY_TABLE, name, test_case=case, phase=phase)
        for name in ("avg_latency_ms", "max_latency_ms", "over_2s_pct", "over_10s_pct")
    }
    return Latencies(
        statistics.fmean(columns["avg_latency_ms"]),
        max(columns["max_latency_ms"]),
        statistics.fmean(columns["over_2s_pct"]),
        statistics.fmean(columns["over_10s_pct"]),
    )


def case_shares(sample: RunSample) -> dict[str, Shares]:
    """Shares of the rates in each phase."""
    return {phase: shares_of(phase_rates(sample, phase)) for phase in PHASES}


def _percent_over(latencies: LatencyHistogram, limit_ms: int) -> float:
    """Share of latencies above a limit, exact to the width of a histogram bin (below 1 % of the limit)."""
    over = sum(count for value_ns, count in latencies.bins.items() if value_ns > limit_ms * 1_000_000)
    return 100 * over / latencies.count if latencies.count else 0.0
