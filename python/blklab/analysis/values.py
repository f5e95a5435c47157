"""The values of an experiment: one number per run (or slot) and metric, by scheduler and block (or round)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial

from blklab.analysis.metrics import Metric, metrics_for
from blklab.analysis.slot_values import SlotValues
from blklab.analysis.statistics.series import Series
from blklab.quantities.sample_units import BLOCKS, SampleUnit
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import JobSample, RunSample
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.slots import SlotDecision
from blklab.spec.workloads import Workload


def metric_values(samples: Iterable[RunSample], workload: Workload, metric: Metric) -> Series:
    """A metric's value in every successful run of a workload, by scheduler and block."""
    values: dict[str, dict[int, float]] = {}
    for sample in samples:
        if sample.status == "ok" and sample.cell.workload == workload.name:
            _enter(values, sample, workload, metric)
    return values


class ExperimentValues:
    """The values of an experiment, finished or under way."""

    def __init__(
        self,
        workloads: Sequence[Workload],
        labels: Sequence[str],
        in_force: Sequence[str],
        switched: Mapping[str, SlotDecision] | None = None,
        of_goal: Sequence[str] = (),
    ) -> None:
        """Begins without any values.

        Args:
            workloads: All workloads of the experiment.
            labels: Labels of all schedulers, in the order in which they were named.
            in_force: Those of them that leave the target as it was before the experiment.
            switched: The workloads that are switched, with their slots.
            of_goal: Names of the goal's metrics.
        """
        self._of_goal = list(of_goal)
        self._switched = {} if switched is None else switched
        self.workloads = list(workloads)
        self.labels = list(labels)
        self.in_force = list(in_force)
        self.series: dict[tuple[str, str], dict[str, dict[int, float]]] = {
            (workload.name, metric.name): {}
            for workload in workloads
            for metric in metrics_for(workload, self._of_goal)
        }
        """By workload and metric, both by name; empty if no run has a value."""
        self._workloads = {workload.name: workload for workload in workloads}
        self._slots: dict[str, SlotValues] = {}
        """Of the workloads that are switched."""
        self._slots_ns = {name: decision.slot_ns for name, decision in self._switched.items()}

    def metrics(self, workload: Workload) -> list[Metric]:
        """Those whose values are asked for."""
        return metrics_for(workload, self._of_goal)

    def unit(self, workload: str) -> SampleUnit:
        """The unit in which a workload's samples are counted."""
        return SampleUnit(self._slots_ns.get(workload))

    def samples_per_value(self, workload: str, metric: str) -> int:
        """Blocks or rounds that one value of a series covers; 1 while that is not known."""
        slots = self._slots.get(workload)
        return 1 if slots is None else slots.group_of(metric) or 1

    @property
    def common_unit(self) -> SampleUnit:
        """The unit of an answer over all judged workloads: rounds only if all of them have slots."""
        slots_ns = [self._slots_ns.get(workload.name) for workload in self.judged]
        lengths = [slot_ns for slot_ns in slots_ns if slot_ns is not None]
        return SampleUnit(max(lengths)) if len(lengths) == len(slots_ns) else BLOCKS

    @property
    def judged(self) -> list[Workload]:
        """The workloads that the answer rests on: all but controls, if there are others."""
        return [workload for workload in self.workloads if not workload.control] or self.workloads

    @property
    def reference(self) -> str:
        """The scheduler that scores are relative to: the one in force before, if tested, else the first."""
        return self.in_force[0] if self.in_force else self.labels[0]

    def add(self, sample: RunSample) -> None:
        """Adds the values of a run; a failed one has none, nor has one of a workload that is not listed."""
        workload = self._workloads.get(sample.cell.workload)
        if sample.status != "ok" or workload is None:
            return
        decision = self._switched.get(workload.name)
        if sample.slot is not None:
            if decision is not None and sample.cell.block >= decision.first_round:
                number = sample.cell.block - decision.first_round
                self._slots_of(workload.name).add(sample.cell.scheduler, number, _measured(sample, workload))
            return
        for metric in metrics_for(workload, self._of_goal):
            _enter(self.series[workload.name, metric.name], sample, workload, metric)

    def samples_per_value_together(self, keys: Collection[tuple[str, str]]) -> int:
        """The same for the series of several workloads and metrics `together`."""
        return max((self.samples_per_value(workload, metric) for workload, metric in keys), default=1)

    def together(self, keys: Collection[tuple[str, str]]) -> Mapping[tuple[str, str], Series]:
        """The series of several workloads and metrics, each value of them for the same runs.

        They are those of `series`, except that slots are grouped by the metric that needs the largest groups.
        """
        sizes = [
            self._slots[workload].group_of(metric) for workload, metric in keys if workload in self._slots
        ]
        known = [size for size in sizes if size is not None]
        if not known or len(known) < len(sizes):
            return {key: {} if key[0] in self._slots else self.series[key] for key in keys}
        return {
            (workload, metric): self._slots[workload].in_groups(metric, max(known))
            if workload in self._slots
            else self.series[workload, metric]
            for workload, metric in keys
        }

    def _slots_of(self, workload: str) -> SlotValues:
        if workload not in self._slots:
            self._slots[workload] = SlotValues(
                partial(self._enter_slot, workload),
                metrics_for(self._workloads[workload], self._of_goal),
            )
        return self._slots[workload]

    def _enter_slot(self, workload: str, metric: str, scheduler: str, position: int, value: float) -> None:
        self.add_value(workload, metric, scheduler, position, value)

    def add_value(self, workload: str, metric: str, scheduler: str, block: int, value: float) -> None:
        """Adds a value that was computed elsewhere, in place of a run."""
        self.series[workload, metric].setdefault(scheduler, {})[block] = value


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
        switched=spec.switched,
        of_goal=[] if spec.goal is None else list(spec.goal.weights),
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
    value = metric.compute(_measured(sample, workload)) if metric.applies_to(workload) else None
    if value is not None:
        series.setdefault(sample.cell.scheduler, {})[sample.cell.block] = value


def _measured(sample: RunSample, workload: Workload) -> list[JobSample]:
    """The sections that the workload's metrics are about."""
    return [job for job in sample.jobs if job.name in workload.focus]
