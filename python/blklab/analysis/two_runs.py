"""Two single runs of one workload: which is better by the workload's metric, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blklab.analysis.causes import LEAST_DIFFERENCE, Cause, cause_of
from blklab.analysis.metrics import metric_named
from blklab.records.behaviour import Behaviour
from blklab.records.samples import JobSample
from blklab.spec.workloads import Workload

OF_SLOWEST = ("latency_p99", "latency_p99_9", "latency_max", "longest_wait")
"""Metrics of the slowest I/Os."""


@dataclass(frozen=True)
class ObservedRun:
    """The figures of a run, and what its scheduler did."""

    behaviour: Behaviour
    jobs: list[JobSample]


@dataclass(frozen=True)
class TwoRuns:
    """The difference of two runs; single runs have no interval."""

    metric: str
    values: list[float | None]
    """In the order of the runs."""
    better: str | None
    """None if they differ by less than a tenth, or if one has no value."""
    cause: Cause | None
    """Of that difference; where the metric is the same, of the job whose waits differ most."""


def focus_of(workload: Workload) -> Sequence[str]:
    """The jobs that a workload's question is about; empty for all."""
    return [] if {job.name for job in workload.jobs} <= set(workload.focus) else list(workload.focus)


def compare_two_runs(runs: Sequence[ObservedRun], workload: Workload) -> TwoRuns:
    """Compares two runs.

    Args:
        runs: Two of them.
        workload: That of both.
    """
    metric = metric_named(workload.decide_by)
    values = [
        metric.compute([job for job in run.jobs if job.name in workload.focus] or run.jobs) for run in runs
    ]
    first, second = values
    if not first or not second or max(first, second) < (1 + LEAST_DIFFERENCE) * min(first, second):
        return TwoRuns(metric.name, values, None, _cause_for_one_job(runs, workload))
    is_first = (first > second) == (metric.better == "higher")
    better, worse = (runs[0], runs[1]) if is_first else (runs[1], runs[0])
    cause = cause_of(
        better.behaviour, worse.behaviour, focus_of(workload), of_slowest=metric.name in OF_SLOWEST
    )
    return TwoRuns(metric.name, values, better.behaviour.scheduler, cause)


def _cause_for_one_job(runs: Sequence[ObservedRun], workload: Workload) -> Cause | None:
    """The gain of one job, where jobs together have the same figure under both."""
    jobs = [job.name for job in workload.jobs]
    first, second = (run.behaviour for run in runs)
    causes = [
        cause
        for job in jobs
        for better, worse in ((first, second), (second, first))
        if len(jobs) > 1 and (cause := cause_of(better, worse, [job])) is not None and cause.phase is not None
    ]
    return max(causes, key=lambda cause: cause.weight, default=None)
