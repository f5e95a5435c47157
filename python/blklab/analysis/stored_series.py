"""The values of a stored experiment as comparisons across experiments need them."""

from __future__ import annotations

from functools import cached_property

from blklab.analysis.designs import Design, design_of
from blklab.analysis.metrics import Metric
from blklab.analysis.statistics.difference import Difference
from blklab.analysis.statistics.series import Series
from blklab.analysis.values import ExperimentValues, experiment_values
from blklab.records.experiment import ExperimentRecord
from blklab.spec.workloads import Workload


class StoredSeries:
    """The values of a stored experiment; schedulers go by their own grammar, not by their labels."""

    def __init__(self, record: ExperimentRecord, *, name_kernels: bool = True) -> None:
        """Reads nothing yet.

        Args:
            record: The experiment.
            name_kernels: Whether a guest's scheduler is known by its kernel as well.
        """
        self.record = record.without_uncounted_slots()
        choices = record.spec.schedulers
        if not name_kernels:
            choices = [choice.model_copy(update={"kernel": None}) for choice in choices]
        self.labels = {choice.without_label: choice.label for choice in choices}
        """By the scheduler in its own grammar."""
        self.workloads = {workload.name: workload for workload in record.spec.workloads}

    @cached_property
    def values(self) -> ExperimentValues:
        """One number per run and metric."""
        return experiment_values(self.record)

    @cached_property
    def design(self) -> Design:
        """The experiment's own."""
        return design_of(self.record.spec)

    def series(self, workload: str, metric: Metric) -> Series:
        """A metric's values by scheduler (in its own grammar) and block."""
        found = self.values.series[workload, metric.name]
        return {name: found[label] for name, label in self.labels.items() if label in found}

    def difference(self, workload: str, metric: Metric, first: str, second: str) -> Difference | None:
        """First against second as the experiment's own report states it; None if they share no block."""
        series = self.series(workload, metric)
        return self.design.of(workload).difference(series.get(first, {}), series.get(second, {}))


def same_work(first: Workload, second: Workload) -> bool:
    """Whether results under two workloads of one name are comparable."""
    return _work(first) == _work(second)


def _work(workload: Workload) -> tuple[object, ...]:
    beside = workload.beside.text if workload.beside else None
    return workload.text, workload.decide_by, workload.command, beside
