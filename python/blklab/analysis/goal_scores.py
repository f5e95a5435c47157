"""The score of a goal: one number per block, a weighted geometric mean of the goal's metrics.

For a block *b* and a scheduler *s* the score is::

    log G(b, s) = 1/W · Σ_workloads Σ_metrics  w_m / Σw · sign_m · log( x(b, s, workload, m) / reference )

with sign -1 where lower is better, W the number of workloads that are not controls and have any of the
goal's metrics, and as reference the geometric mean of the default scheduler's runs. A ratio of two scores
within a block is the weighted geometric mean of the ratios of the metrics. So the reference cancels, and
everything that holds for a single metric (pairing, intervals, tests) holds for the goal unchanged: a score is
one number per block and scheduler. A weighted sum of the results of separate tests has no such property.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from blklab.analysis.metrics import Metric, metric_named
from blklab.analysis.questions import Question
from blklab.analysis.statistics.series import Series
from blklab.analysis.values import ExperimentValues
from blklab.quantities.sample_units import BLOCKS, SampleUnit
from blklab.spec.goals import Goal

GOAL_METRIC = Metric(
    name="goal",
    unit="score",
    better="higher",
    description="weighted geometric mean of the goal's metrics; 1 is the reference scheduler",
    compute=lambda _jobs: None,
)
ALL_WORKLOADS = "all workloads"

_OTHER_SIDE = {"higher": "latency_p99", "lower": "throughput"}
"""The metric shown beside a goal that is a single metric: what the goal costs. By its ``better``."""
_GOAL_METRICS = "goal metrics"
"""The family of the questions about the goal's metrics one by one."""


@dataclass(frozen=True)
class AbsentMetrics:
    """Metrics of a goal that a workload does not have."""

    workload: str
    metrics: tuple[str, ...]
    left_out: bool
    """Whether it has none of them, and so does not count."""


@dataclass(frozen=True)
class GoalScores:
    """Scores of a goal, and of each of its metrics over all workloads."""

    series: Series
    reference: str
    """The scheduler whose mean is 1."""
    dimensions: dict[str, Series]
    """By metric: its geometric mean over the workloads, relative to the reference."""
    absent: list[AbsentMetrics]
    weights: dict[tuple[str, str], float]
    """By workload and metric: the part in the log score, negative where lower is better."""
    unit: SampleUnit = BLOCKS
    """In which the scores are counted."""
    samples_per_value: int = 1
    """Blocks or rounds that one score covers."""

    @property
    def question(self) -> Question:
        """The question of the scheduler that serves the goal best."""
        question = question_over_all(GOAL_METRIC, self.series, self.unit)
        return replace(question, samples_per_value=self.samples_per_value)

    @property
    def dimension_questions(self) -> list[Question]:
        """The same question for each of the goal's metrics; they are one family."""
        return [
            replace(
                question_over_all(replace(metric_named(name), unit=GOAL_METRIC.unit), series),
                family=_GOAL_METRICS,
                family_size=len(self.dimensions),
            )
            for name, series in self.dimensions.items()
        ]


def goal_scores(values: ExperimentValues, goal: Goal) -> GoalScores:
    """Scores of every block that has all the values they need.

    Raises:
        UnknownNameError: if the goal names a metric that does not exist.
    """
    metrics = {name: metric_named(name) for name in goal.weights}
    shown = _dimension_metrics(metrics)
    logs = _logs_together(values, metrics)
    logs |= _logs_together(values, [name for name in shown if name not in metrics])
    weights: dict[tuple[str, str], float] = {}
    absent = []
    names = [workload.name for workload in values.judged]
    served = [name for name in names if any((name, metric) in logs for metric in metrics)]
    for name in names:
        present = {metric: goal.weights[metric] for metric in metrics if (name, metric) in logs}
        lacking = [metric for metric in metrics if metric not in present]
        if lacking:
            absent.append(AbsentMetrics(name, tuple(lacking), left_out=not present))
        for metric, weight in present.items():
            sign = 1 if metrics[metric].better == "higher" else -1
            weights[name, metric] = sign * weight / sum(present.values()) / len(served)
    dimensions: dict[str, Series] = {}
    for metric in shown:
        having = [name for name in names if (name, metric) in logs]
        if having:
            equal = {(name, metric): 1 / len(having) for name in having}
            dimensions[metric] = _weighted(logs, equal)
    return GoalScores(
        _weighted(logs, weights),
        values.reference,
        dimensions,
        absent,
        weights,
        values.common_unit,
        values.samples_per_value_together(list(weights)),
    )


def combined_series(values: ExperimentValues, metric: Metric) -> Series:
    """A metric's geometric mean over the workloads that have it, relative to the reference scheduler."""
    logs = _logs_together(values, [metric.name])
    return _weighted(logs, {key: 1 / len(logs) for key in logs})


def question_over_all(metric: Metric, series: Series, unit: SampleUnit = BLOCKS) -> Question:
    """A question about all workloads together."""
    return Question(workload=ALL_WORKLOADS, metric=metric, values=series, unit=unit)


def _dimension_metrics(metrics: Mapping[str, Metric]) -> dict[str, Metric]:
    if len(metrics) > 1:
        return dict(metrics)
    only = next(iter(metrics.values()))
    other = metric_named(_OTHER_SIDE[only.better])
    return {only.name: only, other.name: other}


def _logs_together(
    values: ExperimentValues, metrics: Iterable[str]
) -> dict[tuple[str, str], dict[str, dict[int, float]]]:
    """Normalised logarithms by workload and metric, of those that have any."""
    together = values.together([(workload.name, name) for name in metrics for workload in values.judged])
    return {
        key: found for key, series in together.items() if (found := _normalised(series, values.reference))
    }


def _normalised(series: Series, reference: str) -> dict[str, dict[int, float]]:
    """Logarithms relative to the mean of the reference; of all schedulers, if it has no value."""
    logs = {
        label: {block: math.log(value) for block, value in values.items() if value > 0}
        for label, values in series.items()
    }
    known = list(logs.get(reference, {}).values()) or [v for each in logs.values() for v in each.values()]
    if not known:
        return {}
    center = statistics.fmean(known)
    return {label: {block: v - center for block, v in each.items()} for label, each in logs.items()}


def _weighted(
    logs: Mapping[tuple[str, str], Series], weights: Mapping[tuple[str, str], float]
) -> dict[str, dict[int, float]]:
    """exp(Σ weight · log), for every scheduler and block that has all of the logarithms."""
    if not weights:
        return {}
    labels = set.intersection(*(set(logs[key]) for key in weights))
    series: dict[str, dict[int, float]] = {}
    for label in sorted(labels):
        blocks = set.intersection(*(set(logs[key][label]) for key in weights))
        scores = {
            block: math.exp(sum(weight * logs[key][label][block] for key, weight in weights.items()))
            for block in sorted(blocks)
        }
        if scores:
            series[label] = scores
    return series
