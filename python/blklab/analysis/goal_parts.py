"""The parts of a goal: what each metric of each workload adds to one scheduler's lead over another.

The log ratio of two scores is the sum of those of all parts, each with its weight (`goal_scores`). So the
factors of the parts multiply to the ratio of the scores, and the largest one decided.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from blklab.analysis.comparison import PairwiseComparison
from blklab.analysis.ranking import MetricVerdict


@dataclass(frozen=True)
class GoalPartShare:
    """One metric of one workload."""

    pair: PairwiseComparison
    """The leader against its rival."""
    factor: float
    """Its part in the ratio of the scores: above 1 it speaks for the leader."""


@dataclass(frozen=True)
class GoalLead:
    """The lead of one scheduler in a goal's score, taken apart."""

    first: str
    second: str
    is_shown: bool
    """Whether the first is shown to be better, so that one can say which part decided."""
    parts: list[GoalPartShare]
    """Those that speak most for the leader first."""


def goal_lead(
    verdict: MetricVerdict,
    scores: Sequence[PairwiseComparison],
    comparisons: Sequence[PairwiseComparison],
    weights: Mapping[tuple[str, str], float],
) -> GoalLead | None:
    """The leader against the nearest of those that it beats, or against the nearest of all.

    Args:
        verdict: On the score.
        scores: The comparisons of the score.
        comparisons: Those of all workloads and metrics.
        weights: By workload and metric, negative where lower is better.

    Returns:
        None if no other has a score, or if the leader shares the first place with all of them.
    """
    leader = next(iter([*verdict.best, *verdict.candidates]), "")
    rivals = (
        [pair.seen_from(leader) for pair in scores if leader in (pair.first, pair.second)] if leader else []
    )
    beaten = [pair for pair in rivals if pair.outcome == "better"]
    nearest = min(beaten or rivals, key=lambda pair: pair.ratio, default=None)
    if nearest is None or all(pair.outcome == "equal" for pair in rivals):
        return None
    parts = [
        GoalPartShare(seen, math.exp(weight * math.log(seen.ratio)))
        for pair in comparisons
        if {pair.first, pair.second} == {nearest.first, nearest.second}
        and (weight := weights.get((pair.workload, pair.metric))) is not None
        and (seen := pair.seen_from(nearest.first)).ratio > 0
    ]
    is_shown = nearest.outcome == "better"
    return GoalLead(nearest.first, nearest.second, is_shown, sorted(parts, key=lambda part: -part.factor))
