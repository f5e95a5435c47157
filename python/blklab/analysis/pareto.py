"""The Pareto front: the schedulers that no other one matches in every dimension and beats in one.

Estimates alone would put nearly every scheduler on the front, since noise alone makes each the best at
something. So the claims rest on the outcomes of `blklab.analysis.comparison`, corrected over all pairs and
dimensions. A scheduler is

* **dominated** if another one is better in a dimension and better or equal in all others;
* on the **front** if against every other one it is better in a dimension, or equal in all;
* **open** otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from blklab.analysis.comparison import PairwiseComparison
from blklab.analysis.ratios import Outcome

FrontStanding = Literal["front", "dominated", "open"]


@dataclass(frozen=True)
class FrontPoint:
    """A scheduler and its standing."""

    scheduler: str
    standing: FrontStanding
    dominated_by: list[str]


def pareto_front(labels: Sequence[str], comparisons: Sequence[PairwiseComparison]) -> list[FrontPoint]:
    """Classifies schedulers by their pairs in every dimension (the comparisons' metrics)."""
    dimensions = list(dict.fromkeys(pair.metric for pair in comparisons))
    outcomes: dict[tuple[str, str], dict[str, Outcome]] = {}
    for pair in comparisons:
        for label in (pair.first, pair.second):
            seen = pair.seen_from(label)
            outcomes.setdefault((label, seen.second), {})[pair.metric] = seen.outcome
    points = []
    for label in labels:
        others = [other for other in labels if other != label]
        dominated_by = [other for other in others if _dominates(outcomes.get((other, label), {}), dimensions)]
        safe = all(_unbeaten(outcomes.get((label, other), {}), dimensions) for other in others)
        standing: FrontStanding = "dominated" if dominated_by else "front" if safe and others else "open"
        points.append(FrontPoint(label, standing, dominated_by))
    return points


def conflicting(comparisons: Sequence[PairwiseComparison]) -> bool:
    """Whether two schedulers beat each other in different dimensions, so that the goal's weights decide."""
    better: set[tuple[str, str]] = set()
    for pair in comparisons:
        for label in (pair.first, pair.second):
            seen = pair.seen_from(label)
            if seen.outcome == "better":
                better.add((label, seen.second))
    return any((second, first) in better for first, second in better)


def _dominates(outcomes: Mapping[str, Outcome], dimensions: Sequence[str]) -> bool:
    found = [outcomes.get(dimension, "undecided") for dimension in dimensions]
    return "better" in found and all(outcome in ("better", "equal") for outcome in found)


def _unbeaten(outcomes: Mapping[str, Outcome], dimensions: Sequence[str]) -> bool:
    found = [outcomes.get(dimension, "undecided") for dimension in dimensions]
    return "better" in found or all(outcome == "equal" for outcome in found)
