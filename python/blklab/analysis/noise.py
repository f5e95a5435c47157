"""The noise of an experiment, as `blklab.analysis.statistics.noise` finds it in its values."""

from __future__ import annotations

from dataclasses import dataclass

from blklab.analysis.metrics import metric_named
from blklab.analysis.statistics.noise import Noise, describe_noise
from blklab.analysis.values import ExperimentValues
from blklab.records.experiment import ExperimentRecord
from blklab.spec.workloads import Workload


@dataclass(frozen=True)
class WorkloadNoise:
    """The noise of the metric that decides a workload."""

    workload: str
    metric: str
    noise: Noise


def noise_of(record: ExperimentRecord, values: ExperimentValues) -> list[WorkloadNoise]:
    """The noise of every workload that has values.

    Raises:
        UnknownNameError: if a workload is decided by a metric that does not exist.
    """
    found = []
    for workload in values.workloads:
        order = _order_of_runs(record, workload)
        metric = metric_named(workload.decide_by).name
        series = values.series[workload.name, metric]
        if series:
            found.append(WorkloadNoise(workload.name, metric, describe_noise(series, order)))
    return found


def _order_of_runs(record: ExperimentRecord, workload: Workload) -> dict[int, list[str]]:
    """Block → schedulers in the order in which they ran, failed runs included."""
    cells = [sample.cell for sample in record.samples if sample.cell.workload == workload.name]
    decision = record.spec.switched.get(workload.name)
    first = 0 if decision is None else decision.first_round
    order: dict[int, list[str]] = {}
    for cell in sorted(cells, key=lambda cell: cell.sequence):
        order.setdefault(cell.block - first, []).append(cell.scheduler)
    return order
