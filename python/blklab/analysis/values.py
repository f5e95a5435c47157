"""The values of an experiment: one number per run and metric, by scheduler and block."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from blklab.analysis.metrics import Metric
from blklab.analysis.statistics.series import Series
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import RunSample
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.workloads import Workload


def metric_values(samples: Iterable[RunSample], workload: Workload, metric: Metric) -> Series:
    """A metric's value in every successful run of a workload, by scheduler and block."""
    values: dict[str, dict[int, float]] = {}
    for sample in samples:
        if sample.status == "ok" and sample.cell.workload == workload.name:
            _enter(values, sample, workload, metric)
    return values


class ExperimentValues:
    """The values of an experiment, finished or under way.

    A metric's values are computed when they are first asked for, and only for runs that were added since.
    """

    def __init__(self, workloads: Sequence[Workload], labels: Sequence[str], in_force: Sequence[str]) -> None:
        """Begins without any values.

        Args:
            workloads: All workloads of the experiment.
            labels: Labels of all schedulers, in the order in which they were named.
            in_force: Those of them that leave the target as it was before the experiment.
        """
        self.workloads = list(workloads)
        self.labels = list(labels)
        self.in_force = list(in_force)
        self._samples: dict[str, list[RunSample]] = {workload.name: [] for workload in workloads}
        self._series: dict[tuple[str, str], dict[str, dict[int, float]]] = {}
        self._nr_seen: dict[tuple[str, str], int] = {}

    @property
    def judged(self) -> list[Workload]:
        """The workloads that the answer rests on: all but controls, if there are others."""
        return [workload for workload in self.workloads if not workload.control] or self.workloads

    @property
    def reference(self) -> str:
        """The scheduler that scores are relative to: the one in force before, if tested, else the first."""
        return self.in_force[0] if self.in_force else self.labels[0]

    def add(self, sample: RunSample) -> None:
        """Adds a run; a failed one has no values."""
        if sample.status == "ok":
            self._samples[sample.cell.workload].append(sample)

    def add_value(self, workload: Workload, metric: Metric, scheduler: str, block: int, value: float) -> None:
        """Adds a value that was computed elsewhere, in place of a run."""
        series = self._series.setdefault((workload.name, metric.name), {})
        series.setdefault(scheduler, {})[block] = value

    def series(self, workload: Workload, metric: Metric) -> Series:
        """A metric's values under a workload; empty if no run has one."""
        key = workload.name, metric.name
        series = self._series.setdefault(key, {})
        samples = self._samples[workload.name]
        for sample in samples[self._nr_seen.get(key, 0) :]:
            _enter(series, sample, workload, metric)
        self._nr_seen[key] = len(samples)
        return series


def values_begun(spec: ExperimentSpec, default_scheduler: str | None) -> ExperimentValues:
    """The values of an experiment before its first run.

    Args:
        spec: The experiment, with its schedulers settled.
        default_scheduler: The kernel's name of the scheduler in force before the experiment.
    """
    return ExperimentValues(
        workloads=spec.workloads,
        labels=[choice.label for choice in spec.schedulers],
        in_force=[choice.label for choice in spec.schedulers if choice.without_label == default_scheduler],
    )


def experiment_values(record: ExperimentRecord) -> ExperimentValues:
    """The values of a stored experiment."""
    values = values_begun(record.spec, record.target.default_scheduler)
    for sample in record.samples:
        values.add(sample)
    return values


def _enter(
    series: dict[str, dict[int, float]], sample: RunSample, workload: Workload, metric: Metric
) -> None:
    """Puts a run's value in its place, if it has one."""
    value = metric.compute([job for job in sample.jobs if job.name in workload.focus])
    if value is not None:
        series.setdefault(sample.cell.scheduler, {})[sample.cell.block] = value
