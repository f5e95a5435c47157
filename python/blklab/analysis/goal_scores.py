"""One figure per block for a purpose: a weighted geometric mean of the metrics that serve it.

For a block *b* and a scheduler *s* the figure is::

    log G(b, s) = 1/W · Σ_workloads Σ_metrics  w_m / Σw · sign_m · log( x(b, s, workload, m) / reference )

with sign -1 where lower is better, W the number of workloads that are not controls and have any of the
goal's metrics, and as reference the geometric mean of the default scheduler's runs. A ratio of two such
figures within a block is the weighted geometric mean of the ratios of the metrics, so the reference cancels
and everything that holds for a single metric (pairing, intervals, tests) holds for the goal unchanged: it is
one number for each block and scheduler. Weighting the results of separate tests would have no such property.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from blklab.analysis.comparison import Question, Series, metric_values
from blklab.analysis.metrics import Metric, metric_named
from blklab.quantities.formatting import metric_title
from blklab.records.experiment import ExperimentRecord
from blklab.spec.goals import Goal
from blklab.spec.workloads import Workload

GOAL_METRIC = Metric(
    name="goal",
    unit="score",
    better="higher",
    description="weighted geometric mean of the goal's metrics; 1 is the reference scheduler",
    compute=lambda _jobs: None,
)
ALL_WORKLOADS = "all workloads"

_OTHER_SIDE = {"higher": "latency_p99", "lower": "throughput"}
"""What is set against a goal of a single metric, to show what it costs."""


@dataclass(frozen=True)
class GoalFigures:
    """The goal's figures, and those of each metric over all workloads."""

    series: Series
    reference: str
    """The scheduler whose mean is 1."""
    dimensions: dict[str, Series]
    """By metric: its geometric mean over the workloads, relative to the reference."""
    absent: list[str]
    """Sentences on what the workloads do not have."""


def judged_workloads(record: ExperimentRecord) -> list[Workload]:
    """Those that an answer rests on: all but controls, if there are others."""
    workloads = record.spec.workloads
    return [workload for workload in workloads if not workload.control] or list(workloads)


def reference_label(record: ExperimentRecord) -> str:
    """The scheduler that was in force before, as it was, if it was tested; else the first."""
    default = record.target.default_scheduler
    for choice in record.spec.schedulers:
        if choice.without_label == default:
            return choice.label
    return record.spec.schedulers[0].label


def goal_figures(record: ExperimentRecord, goal: Goal) -> GoalFigures:
    """Figures of every block that has all of them.

    Raises:
        UnknownNameError: if the goal names a metric that does not exist.
    """
    reference = reference_label(record)
    metrics = {name: metric_named(name) for name in goal.weights}
    shown = _dimension_metrics(metrics)
    values = {
        (workload.name, name): found
        for workload in judged_workloads(record)
        for name, metric in (metrics | shown).items()
        if (found := _normalised(metric_values(record.samples, workload, metric), reference))
    }
    weights: dict[tuple[str, str], float] = {}
    absent = []
    names = [workload.name for workload in judged_workloads(record)]
    served = [name for name in names if any((name, metric) in values for metric in metrics)]
    for name in names:
        present = {metric: goal.weights[metric] for metric in metrics if (name, metric) in values}
        lacking = [metric for metric in metrics if metric not in present]
        if lacking:
            absent.append(
                f"{name} has no {', '.join(map(metric_title, lacking))}" + ("" if present else ": left out")
            )
        for metric, weight in present.items():
            sign = 1 if metrics[metric].better == "higher" else -1
            weights[name, metric] = sign * weight / sum(present.values()) / len(served)
    dimensions: dict[str, Series] = {}
    for metric in shown:
        having = [name for name in names if (name, metric) in values]
        if having:
            equal = {(name, metric): 1 / len(having) for name in having}
            dimensions[metric] = _weighted(values, equal)
    return GoalFigures(_weighted(values, weights), reference, dimensions, absent)


def combined_series(record: ExperimentRecord, metric: Metric) -> Series:
    """A metric's geometric mean over the workloads that have it, relative to the reference scheduler."""
    reference = reference_label(record)
    values = {
        (workload.name, metric.name): found
        for workload in judged_workloads(record)
        if (found := _normalised(metric_values(record.samples, workload, metric), reference))
    }
    return _weighted(values, {key: 1 / len(values) for key in values})


def question_over_all(
    record: ExperimentRecord, metric: Metric, series: Series, *, family: int = 1
) -> Question:
    """A question about all workloads at once, for `blklab.analysis.comparison.compare_all`."""
    everything = judged_workloads(record)[0].model_copy(update={"name": ALL_WORKLOADS, "control": False})
    return Question(workload=everything, metric=metric, decides=True, values=series, family=family)


def _dimension_metrics(metrics: Mapping[str, Metric]) -> dict[str, Metric]:
    if len(metrics) > 1:
        return dict(metrics)
    only = next(iter(metrics.values()))
    other = metric_named(_OTHER_SIDE[only.better])
    return {only.name: only, other.name: other}


def _normalised(values: Mapping[str, Mapping[int, float]], reference: str) -> dict[str, dict[int, float]]:
    """Logarithms relative to the reference's mean (or, if it has no figure, to everybody's)."""
    logs = {
        label: {block: math.log(value) for block, value in figures.items() if value > 0}
        for label, figures in values.items()
    }
    known = list(logs.get(reference, {}).values()) or [v for each in logs.values() for v in each.values()]
    if not known:
        return {}
    center = statistics.fmean(known)
    return {label: {block: v - center for block, v in each.items()} for label, each in logs.items()}


def _weighted(
    values: Mapping[tuple[str, str], Mapping[str, Mapping[int, float]]],
    weights: Mapping[tuple[str, str], float],
) -> dict[str, dict[int, float]]:
    """exp(Σ weight · log), for every scheduler and block that has all of the parts."""
    if not weights:
        return {}
    labels = set.intersection(*(set(values[key]) for key in weights))
    series: dict[str, dict[int, float]] = {}
    for label in sorted(labels):
        blocks = set.intersection(*(set(values[key][label]) for key in weights))
        figures = {
            block: math.exp(sum(weight * values[key][label][block] for key, weight in weights.items()))
            for block in sorted(blocks)
        }
        if figures:
            series[label] = figures
    return series


def metrics_by_weight(goal: Goal, dimensions: Sequence[str]) -> list[str]:
    """Dimensions, the goal's heaviest first."""
    return sorted(dimensions, key=lambda name: (-goal.weights.get(name, 0), list(dimensions).index(name)))
