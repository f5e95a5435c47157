"""What an experiment says of its goal: scores, pairs, the verdict, and the front of its parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from blklab.analysis.comparison import Comparison, Result, compare_all, summarise
from blklab.analysis.goal_scores import GOAL_METRIC, goal_figures, question_over_all
from blklab.analysis.metrics import metric_named
from blklab.analysis.pareto import FrontPoint, conflicting, pareto_front
from blklab.analysis.ranking import MetricVerdict, metric_verdict
from blklab.records.experiment import ExperimentRecord
from blklab.spec.goals import Goal


@dataclass(frozen=True)
class GoalFindings:
    """What the goal's figure says over all workloads, and where schedulers stand in its parts."""

    goal: Goal
    reference: str
    """The scheduler whose score is 1."""
    results: list[Result]
    comparisons: list[Comparison]
    verdict: MetricVerdict | None
    """Nothing if no block has a figure."""
    dimensions: list[str]
    """Metrics, each of them relative to the reference over all workloads that have it."""
    dimension_results: list[Result]
    dimension_comparisons: list[Comparison]
    front: list[FrontPoint]
    conflict: bool
    """Whether two schedulers beat each other, each in another dimension: the weights decide between them."""
    absent: list[str]


def goal_findings(record: ExperimentRecord, goal: Goal, labels: Sequence[str]) -> GoalFindings:
    """Compares the goal's figures, and its parts for the Pareto front; each is a family of its own."""
    spec = record.spec
    figures = goal_figures(record, goal)
    results: list[Result] = []
    comparisons: list[Comparison] = []
    verdict = None
    if figures.series:
        question = question_over_all(record, GOAL_METRIC, figures.series)
        results = summarise(figures.series, question.workload, GOAL_METRIC, spec, labels)
        ((_, comparisons),) = compare_all([question], spec, labels)
        verdict = metric_verdict(question, comparisons, spec, labels)
    parts = [
        question_over_all(record, metric_named(name), series, family=len(figures.dimensions))
        for name, series in figures.dimensions.items()
    ]
    pairs = [pair for _, found in compare_all(parts, spec, labels) for pair in found]
    part_results = [
        replace(result, unit="score")
        for part in parts
        for result in summarise(part.values, part.workload, part.metric, spec, labels)
    ]
    several = len(figures.dimensions) > 1
    return GoalFindings(
        goal=goal,
        reference=figures.reference,
        results=results,
        comparisons=comparisons,
        verdict=verdict,
        dimensions=list(figures.dimensions),
        dimension_results=part_results,
        dimension_comparisons=pairs,
        front=pareto_front(labels, pairs) if several else [],
        conflict=several and conflicting(pairs),
        absent=figures.absent,
    )
