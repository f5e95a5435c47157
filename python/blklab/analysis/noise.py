"""The noise of an experiment: what `blklab.analysis.statistics.noise` finds in its samples."""

from __future__ import annotations

from dataclasses import dataclass

from blklab.analysis.comparison import metric_values
from blklab.analysis.metrics import metric_named
from blklab.analysis.statistics.noise import Noise, describe_noise
from blklab.records.experiment import ExperimentRecord
from blklab.spec.workloads import Workload


@dataclass(frozen=True)
class WorkloadNoise:
    """The noise of the metric that decides a workload."""

    workload: str
    metric: str
    noise: Noise


def noise_of(record: ExperimentRecord) -> list[WorkloadNoise]:
    """The noise of every workload that has figures.

    Raises:
        UnknownNameError: if a workload wants to be decided by a metric that does not exist.
    """
    found = []
    for workload in record.spec.workloads:
        metric = metric_named(workload.decide_by)
        values = metric_values(record.samples, workload, metric)
        if values:
            noise = describe_noise(values, _order_of_runs(record, workload))
            found.append(WorkloadNoise(workload.name, metric.name, noise))
    return found


def _order_of_runs(record: ExperimentRecord, workload: Workload) -> dict[int, list[str]]:
    """Block → schedulers in the order in which they ran, failed runs included."""
    cells = [sample.cell for sample in record.samples if sample.cell.workload == workload.name]
    order: dict[int, list[str]] = {}
    for cell in sorted(cells, key=lambda cell: cell.sequence):
        order.setdefault(cell.block, []).append(cell.scheduler)
    return order
