"""The goal of a class of drives: on each drive one score, over all workloads together.

A drive may have been tested under its workloads in several experiments. Each of them gives a score of its
own workloads, one number for each block, and the log ratio of two schedulers with its error. The drive's log
ratio is the mean over workloads, so that of the experiments, weighted by the number of workloads that each
stands for. A drive counts only if it was tested under all workloads: otherwise drives would differ because
their work did.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from blklab.analysis.class_comparison import ClassComparison, DriveRatio, class_comparison
from blklab.analysis.comparison import PairwiseComparison, compare_all
from blklab.analysis.designs import PopulationDesign
from blklab.analysis.drives import Drive, DriveExperiment, Fleet
from blklab.analysis.goal_scores import ALL_WORKLOADS, GOAL_METRIC, AbsentMetrics, GoalScores, goal_scores
from blklab.analysis.metrics import Metric, metric_named
from blklab.analysis.pareto import FrontPoint, conflicting, pareto_front
from blklab.analysis.questions import Question
from blklab.analysis.ranking import MetricVerdict, metric_verdict
from blklab.analysis.statistics.difference import Difference
from blklab.analysis.statistics.population import (
    FEWEST_DRIVES,
    DriveEffect,
    PopulationDifference,
    population_difference,
)
from blklab.analysis.statistics.series import Series
from blklab.quantities.sample_units import DRIVES
from blklab.spec.goals import Goal

_METRICS_OF_GOAL = "goal metrics"
"""The family of the questions about the goal's metrics one by one."""


@dataclass(frozen=True)
class WorkloadLeftOut:
    """A workload that too few drives have figures for."""

    workload: str
    drives: int


@dataclass(frozen=True)
class DrivesLeftOut:
    """Drives that were not tested under all of the goal's workloads."""

    drives: Sequence[str]
    workloads: Sequence[str]


GoalRemark = WorkloadLeftOut | DrivesLeftOut


@dataclass(frozen=True)
class FleetGoal:
    """The score of a goal over the drives of a class, and the metrics that it is made of."""

    goal: Goal
    workloads: Sequence[str]
    """Those that the score is about."""
    comparisons: Sequence[ClassComparison]
    """Of the score."""
    verdict: MetricVerdict
    """On the score."""
    dimensions: Sequence[str]
    """Metrics, each of them over all workloads that have it."""
    dimension_comparisons: Sequence[ClassComparison]
    front: Sequence[FrontPoint]
    """The schedulers' standing in these metrics; empty if there is one only."""
    conflict: bool
    """Whether two schedulers beat each other, each in another metric: the weights decide between them."""
    absent: Sequence[AbsentMetrics]
    remarks: Sequence[GoalRemark]

    def against(self, label: str, metric: str = GOAL_METRIC.name) -> list[ClassComparison]:
        """A scheduler against each other one by the score, or by one of its metrics, seen from it."""
        return [
            one.seen_from(label)
            for one in [*self.comparisons, *self.dimension_comparisons]
            if one.mean.metric == metric and label in (one.mean.first, one.mean.second)
        ]


@dataclass(frozen=True)
class _Part:
    """The workloads of a drive that one experiment stands for."""

    experiment: DriveExperiment
    scores: GoalScores
    nr_workloads: int

    def series(self, metric: str) -> Series:
        """Values by scheduler (in its own grammar) and block, of the score or of one of its metrics."""
        found = self.scores.series if metric == GOAL_METRIC.name else self.scores.dimensions.get(metric, {})
        return {name: found[label] for name, label in self.experiment.labels.items() if label in found}

    def difference(self, metric: str, first: str, second: str) -> Difference | None:
        """First against second by the experiment's own design."""
        series = self.series(metric)
        design = self.experiment.design.of(ALL_WORKLOADS)
        return design.difference(series.get(first, {}), series.get(second, {}))


def fleet_goal(fleet: Fleet, goal: Goal, design: PopulationDesign, labels: Sequence[str]) -> FleetGoal:
    """Puts the scores of all drives together.

    Args:
        fleet: The experiments.
        goal: The metrics and their weights.
        design: Of the class's verdict.
        labels: All schedulers.

    Raises:
        UnknownNameError: if the goal names a metric that does not exist.
    """
    workloads, drives, remarks = _tested(fleet, goal)
    parts = [_parts(fleet, drive, workloads, goal) for drive in drives]
    dimensions = list(
        dict.fromkeys(metric for own in parts for part in own for metric in part.scores.dimensions)
    )
    scores = _Scores(drives, parts, design.margin)
    questions = [
        _question(GOAL_METRIC, scores, labels),
        *(_question(metric_named(name), scores, labels, family_size=len(dimensions)) for name in dimensions),
    ]
    compared = compare_all(questions, design, labels, scores.of)
    of_score, *of_dimensions = [
        [scores.comparison(pair, question.metric, design.confidence) for pair in pairs]
        for question, pairs in zip(questions, compared, strict=True)
    ]
    in_dimensions = [pair for pairs in compared[1:] for pair in pairs]
    several = len(dimensions) > 1
    return FleetGoal(
        goal=goal,
        workloads=workloads,
        comparisons=of_score,
        verdict=metric_verdict(questions[0], compared[0], design, labels),
        dimensions=dimensions,
        dimension_comparisons=[one for several_pairs in of_dimensions for one in several_pairs],
        front=pareto_front(labels, in_dimensions) if several else [],
        conflict=several and conflicting(in_dimensions),
        absent=list(dict.fromkeys(line for own in parts for part in own for line in part.scores.absent)),
        remarks=remarks,
    )


def _tested(fleet: Fleet, goal: Goal) -> tuple[list[str], list[Drive], list[GoalRemark]]:
    """The workloads of the score, the drives that were tested under all of them, and what is left out."""
    metrics = [metric_named(name).name for name in goal.weights]
    names = [name for name in fleet.experiments if not fleet.workloads[name].control] or [*fleet.experiments]
    tested = {
        name: {
            one.drive.identity
            for one in fleet.experiments[name]
            if any(one.values.series[name, metric] for metric in metrics)
        }
        for name in names
    }
    needed = max(1, min(FEWEST_DRIVES, max(map(len, tested.values()), default=0)))
    kept = [name for name in names if len(tested[name]) >= needed]
    remarks: list[GoalRemark] = [
        WorkloadLeftOut(name, len(tested[name])) for name in names if name not in kept
    ]
    drives = [drive for drive in fleet.drives if all(drive.identity in tested[name] for name in kept)]
    others = [drive.name for drive in fleet.drives if drive not in drives]
    if others and kept:
        remarks.append(DrivesLeftOut(others, kept))
    return kept, drives if kept else [], remarks


def _parts(fleet: Fleet, drive: Drive, workloads: Sequence[str], goal: Goal) -> list[_Part]:
    """The experiments of a drive, each with the workloads that it stands for."""
    by_run: dict[str, tuple[DriveExperiment, list[str]]] = {}
    for name in workloads:
        own = next(one for one in fleet.experiments[name] if one.drive.identity == drive.identity)
        by_run.setdefault(own.record.run_id, (own, []))[1].append(name)
    return [
        _Part(of_these := own.under(names), goal_scores(of_these.values, goal), len(names))
        for _, (own, names) in sorted(by_run.items())
    ]


def _question(metric: Metric, scores: _Scores, labels: Sequence[str], *, family_size: int = 0) -> Question:
    """The best scheduler by the score, or by one of its metrics; the metrics are one family."""
    return Question(
        workload=ALL_WORKLOADS,
        metric=metric,
        values=scores.levels(metric.name, labels),
        decides=not family_size,
        family=_METRICS_OF_GOAL if family_size else None,
        family_size=max(1, family_size),
        unit=DRIVES,
    )


class _Scores:
    """Differences over drives, and the drives' own behind them."""

    def __init__(self, drives: Sequence[Drive], parts: Sequence[Sequence[_Part]], margin: float) -> None:
        self._drives = drives
        self._parts = parts
        self._margin = margin
        self._found: dict[tuple[str, str, str], tuple[PopulationDifference, list[DriveRatio]]] = {}

    def levels(self, metric: str, labels: Sequence[str]) -> dict[str, dict[int, float]]:
        """By scheduler and number of the drive: its level, relative to the drive's own."""
        found: dict[str, dict[int, float]] = {}
        for number, own in enumerate(self._parts):
            together = [logs for part in own if (logs := _levels(part.series(metric), labels))]
            if len(together) < len(own):
                continue
            nr_workloads = sum(part.nr_workloads for part in own)
            common = set.intersection(*(set(logs) for logs in together))
            for name in sorted(common):
                level = sum(
                    part.nr_workloads / nr_workloads * logs[name]
                    for part, logs in zip(own, together, strict=True)
                )
                found.setdefault(name, {})[number] = math.exp(level)
        return found

    def of(self, question: Question, first: str, second: str) -> Difference | None:
        """Over the drives on which both have figures; None if there are none."""
        metric = question.metric.name
        effects, ratios = [], []
        for drive, own in zip(self._drives, self._parts, strict=True):
            differences = [part.difference(metric, first, second) for part in own]
            found = [one for one in differences if one is not None and math.isfinite(one.standard_error)]
            if len(found) < len(own):
                continue
            effect, ratio = _together(drive, own, found)
            effects.append(effect)
            ratios.append(ratio)
        if not effects:
            return None
        difference = population_difference(effects, margin=self._margin)
        self._found[metric, first, second] = difference, ratios
        return difference

    def comparison(self, mean: PairwiseComparison, metric: Metric, confidence: float) -> ClassComparison:
        """A comparison with what it predicts."""
        difference, ratios = self._found[mean.metric, mean.first, mean.second]
        return class_comparison(mean, metric, difference, ratios, margin=self._margin, confidence=confidence)


def _levels(series: Series, labels: Sequence[str]) -> Mapping[str, float]:
    """Mean logarithms over the blocks that all schedulers have, relative to the mean of all."""
    present = {name: series[name] for name in labels if name in series}
    shared = set.intersection(*(set(values) for values in present.values())) if present else set()
    if not shared:
        return {}
    logs = {
        name: statistics.fmean(math.log(values[block]) for block in shared)
        for name, values in present.items()
    }
    center = statistics.fmean(logs.values())
    return {name: level - center for name, level in logs.items()}


def _together(
    drive: Drive, parts: Sequence[_Part], differences: Sequence[Difference]
) -> tuple[DriveEffect, DriveRatio]:
    """The mean over a drive's workloads; errors of different experiments do not depend on each other."""
    total = sum(part.nr_workloads for part in parts)
    weights = [part.nr_workloads / total for part in parts]
    log_ratio = sum(weight * one.log_ratio for weight, one in zip(weights, differences, strict=True))
    error = math.hypot(
        *(weight * one.standard_error for weight, one in zip(weights, differences, strict=True))
    )
    intervals = [
        one.ratio_interval(part.experiment.record.spec.confidence)
        for part, one in zip(parts, differences, strict=True)
    ]
    below = above = None
    if all(interval is not None for interval in intervals):
        known = [interval for interval in intervals if interval is not None]
        below, above = (
            math.hypot(
                *(
                    weight * (math.log(interval[side]) - one.log_ratio)
                    for weight, interval, one in zip(weights, known, differences, strict=True)
                )
            )
            for side in (0, 1)
        )
    return DriveEffect(log_ratio, error), DriveRatio(
        drive=drive,
        run_id=", ".join(part.experiment.record.run_id for part in parts),
        n=min(one.n for one in differences),
        ratio=math.exp(log_ratio),
        ci_low=None if below is None else math.exp(log_ratio - below),
        ci_high=None if above is None else math.exp(log_ratio + above),
    )
