"""Metrics: one file each. A new one is a file beside this one and a name in `_NAMES`.

Other packages add theirs by an entry point (`blklab.registry`).

A metric's module has ``NAME``, ``UNIT``, ``BETTER`` (``higher`` or ``lower``), ``DESCRIPTION`` and
``compute(jobs)``, which turns the measured sections of one run into one number, or None if the run
has no such value (no fsync, no CPU accounting in a simulation).

A metric of rare I/Os also has ``FEWEST_IOS``: a slot of a switchback with fewer of them (`counted_ios`) is
merged with the next ones before ``compute`` sees it (`blklab.analysis.slot_values`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal

from blklab.analysis.metrics import _of_jobs as _of_jobs_module
from blklab.analysis.metrics._of_jobs import jobs_named
from blklab.errors import UnknownNameError, did_you_mean
from blklab.records.samples import JobSample
from blklab.registry import Registry
from blklab.spec.workloads import Workload

Better = Literal["higher", "lower"]

_NAMES = (
    "throughput",
    "iops",
    "latency_mean",
    "latency_p50",
    "latency_p99",
    "latency_p99_9",
    "latency_max",
    "sync_latency_p99",
    "cpu_per_io",
    "jain_index",
    "share_deviation",
    "longest_wait",
    "wall_time",
    "processor_time",
    "io_wait",
    "bytes_read",
    "bytes_written",
    "makespan",
)


@dataclass(frozen=True)
class Metric:
    """One number per run, and which way is better."""

    name: str
    unit: str
    better: Better
    description: str
    compute: Callable[[Sequence[JobSample]], float | None]
    fewest_ios: int = 1
    """I/Os that a value should rest on, so that at least three lie beyond a percentile."""
    counts_syncs: bool = False
    """Whether the I/Os that it rests on are calls of fsync and fdatasync."""
    of_loads_that_end: bool = False
    """Whether it says something only about replays and workloads that it decides; others last as long as
    they were told to."""

    def applies_to(self, workload: Workload) -> bool:
        """Whether it says something about a workload."""
        return not self.of_loads_that_end or workload.replays or workload.decide_by == self.name

    def counted_ios(self, jobs: Sequence[JobSample]) -> int:
        """The I/Os that its value rests on."""
        return sum(
            entry.ios
            for job in jobs
            for entry in job.directions
            if (entry.direction == "sync") == self.counts_syncs
        )


def _checked(name: str, module: Any) -> Metric:
    metric = Metric(
        module.NAME,
        module.UNIT,
        module.BETTER,
        module.DESCRIPTION,
        module.compute,
        getattr(module, "FEWEST_IOS", 1),
        getattr(module, "COUNTS_SYNCS", False),
        getattr(module, "OF_LOADS_THAT_END", False),
    )
    if metric.name != name:
        raise TypeError(f"the metric {name} calls itself {metric.name!r}")
    if metric.better not in ("higher", "lower"):
        raise TypeError(f"BETTER of {name} is {metric.better!r}, not 'higher' or 'lower'")
    return metric


@cache
def _of_jobs(name: str) -> Metric:
    unit, description = _of_jobs_module.describe(name)
    compute = partial(_of_jobs_module.compute, name)
    return Metric(name, unit, "higher", description, compute, _of_jobs_module.FEWEST_IOS)


class _Metrics(Registry[Metric]):
    """The metrics by name. Those that name jobs are found too, but are not listed."""

    def __getitem__(self, name: str) -> Metric:
        return _of_jobs(name) if jobs_named(name) else super().__getitem__(name)


METRICS = _Metrics("blklab.metrics", {name: f"blklab.analysis.metrics.{name}" for name in _NAMES}, _checked)


def metric_named(name: str) -> Metric:
    """The metric of that name.

    Raises:
        UnknownNameError: if there is none.
    """
    if name not in METRICS and not jobs_named(name):
        raise UnknownNameError(
            f"there is no metric {name!r}",
            hint=did_you_mean(name, list(METRICS))
            or f"known are {', '.join(METRICS)}, {_of_jobs_module.GRAMMAR}",
        )
    return METRICS[name]


def metric_of(name: str, workload: Workload) -> Metric:
    """The metric of that name, for a workload that has the jobs it names.

    Raises:
        UnknownNameError: if there is none, or if a job that it names is not measured in the workload.
    """
    metric = metric_named(name)
    for job in jobs_named(name):
        if job not in workload.focus:
            raise UnknownNameError(
                f"{name}: {workload.name} measures no job {job!r}", hint=f"it has {', '.join(workload.focus)}"
            )
    return metric


def metrics_for(workload: Workload, also: Iterable[str] = ()) -> list[Metric]:
    """All metrics, and those that name jobs among the one that decides a workload and others.

    Args:
        workload: The one whose figures are asked for.
        also: Names of metrics, such as those of a goal.
    """
    named = [name for name in dict.fromkeys((workload.decide_by, *also)) if jobs_named(name)]
    return [*METRICS.values(), *(METRICS[name] for name in named)]
