"""The findings on a goal: scores, pairs, the verdict, and the Pareto front of its metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blklab.analysis.comparison import PairwiseComparison
from blklab.analysis.goal_parts import GoalLead, goal_lead
from blklab.analysis.goal_scores import AbsentMetrics, GoalScores
from blklab.analysis.means import SchedulerMean
from blklab.analysis.pareto import FrontPoint, conflicting, pareto_front
from blklab.analysis.ranking import MetricVerdict
from blklab.spec.goals import Goal


@dataclass(frozen=True)
class GoalFindings:
    """The verdict on the goal's score over all workloads, and the schedulers' standing in its metrics."""

    goal: Goal
    reference: str
    """The scheduler whose score is 1."""
    results: list[SchedulerMean]
    comparisons: list[PairwiseComparison]
    verdict: MetricVerdict | None
    """None if no block has a score."""
    dimensions: list[str]
    """Metrics, each of them relative to the reference over all workloads that have it."""
    dimension_results: list[SchedulerMean]
    dimension_comparisons: list[PairwiseComparison]
    front: list[FrontPoint]
    conflict: bool
    """Whether two schedulers beat each other, each in another dimension: the weights decide between them."""
    absent: list[AbsentMetrics]
    lead: GoalLead | None
    """The leader's score against its nearest rival's, taken apart; None if no other has a score."""


def goal_findings(
    goal: Goal,
    scores: GoalScores,
    means: Sequence[list[SchedulerMean]],
    compared: Sequence[list[PairwiseComparison]],
    of_workloads: Sequence[PairwiseComparison],
    verdict: MetricVerdict,
    labels: Sequence[str],
) -> GoalFindings:
    """Puts together all that is known of a goal.

    Args:
        goal: The experiment's.
        scores: Its scores.
        means: Of `scores.question`, then of each of `scores.dimension_questions`.
        compared: Their comparisons, likewise.
        of_workloads: Comparisons of all workloads and metrics.
        verdict: On `scores.question`.
        labels: All schedulers.
    """
    dimension_comparisons = [pair for pairs in compared[1:] for pair in pairs]
    several = len(scores.dimensions) > 1
    return GoalFindings(
        goal=goal,
        reference=scores.reference,
        results=means[0],
        comparisons=compared[0],
        verdict=verdict if scores.series else None,
        dimensions=list(scores.dimensions),
        dimension_results=[mean for part in means[1:] for mean in part],
        dimension_comparisons=dimension_comparisons,
        front=pareto_front(labels, dimension_comparisons) if several else [],
        conflict=several and conflicting(dimension_comparisons),
        absent=scores.absent,
        lead=goal_lead(verdict, compared[0], of_workloads, scores.weights),
    )
