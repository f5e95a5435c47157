"""The parts of runs between planned changes: a workload's metric in each of them, by scheduler."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from blklab.analysis.designs import design_of
from blklab.analysis.means import SchedulerMean
from blklab.analysis.metrics import metric_named
from blklab.analysis.values import metric_values
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import RunSample
from blklab.spec.changes import Change
from blklab.spec.workloads import Workload


def moments_of(changes: Sequence[Change]) -> list[int]:
    """The moments (ns from the start of the load) at which anything changes, in order."""
    return sorted({change.at_ns for change in changes})


def phase_number(moments_ns: Sequence[int], from_ns: int) -> int:
    """Number of the phase that begins at a time: that of the moments up to it."""
    return bisect_right(moments_ns, from_ns)


def phase_means(record: ExperimentRecord, workload: Workload) -> dict[int, list[SchedulerMean]]:
    """The metric that decides, in each phase: every scheduler's geometric mean over its runs.

    Args:
        record: The experiment.
        workload: One of its workloads.

    Returns:
        By the phase's number, from 0; without phases in which no run has a value.
    """
    moments_ns = moments_of(record.spec.changes)
    metric = metric_named(workload.decide_by)
    design = design_of(record.spec).of(workload.name)
    labels = [choice.label for choice in record.spec.schedulers]
    found: dict[int, list[SchedulerMean]] = {}
    for number in range(len(moments_ns) + 1):
        samples = [part for one in record.samples for part in _in_phase(one, moments_ns, number)]
        means = design.means(metric_values(samples, workload, metric))
        if means:
            found[number] = [
                SchedulerMean(
                    scheduler=label,
                    workload=workload.name,
                    metric=metric.name,
                    unit=metric.unit,
                    n=means[label].n,
                    mean=means[label].mean,
                    ci_low=means[label].low,
                    ci_high=means[label].high,
                )
                for label in labels
                if label in means
            ]
    return found


def _in_phase(sample: RunSample, moments_ns: Sequence[int], number: int) -> list[RunSample]:
    """The sample as if its run had been that phase; empty if it has no such phase."""
    return [
        sample.model_copy(update={"jobs": phase.jobs})
        for phase in sample.phases
        if phase_number(moments_ns, phase.from_ns) == number
    ]
