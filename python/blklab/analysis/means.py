"""The mean of each scheduler under a workload, with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blklab.analysis.designs import Design
from blklab.analysis.questions import Question


@dataclass(frozen=True)
class SchedulerMean:
    """Geometric mean of a metric over the runs of a scheduler under a workload."""

    scheduler: str
    workload: str
    metric: str
    unit: str
    n: int
    """Runs with a positive value."""
    mean: float
    ci_low: float | None
    ci_high: float | None


def scheduler_means(question: Question, design: Design, labels: Sequence[str]) -> list[SchedulerMean]:
    """The mean of every scheduler that has a positive value, in the order of the labels."""
    means = design.of(question.workload).means(question.values)
    return [
        SchedulerMean(
            scheduler=label,
            workload=question.workload,
            metric=question.metric.name,
            unit=question.metric.unit,
            n=means[label].n,
            mean=means[label].mean,
            ci_low=means[label].low,
            ci_high=means[label].high,
        )
        for label in labels
        if label in means
    ]
