"""Which schedulers are on the Pareto front: nobody is as good in everything and better in something.

Estimates alone would put nearly everybody on the front, since noise alone makes each the best at something.
So the claims rest on pairs as `blklab.analysis.comparison` judged them, corrected over all pairs and
dimensions:

* **dominated** if some other one is better in a dimension and better or equal in all others;
* **front** if against every other one it is better in a dimension, or equal in all;
* **open** otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from blklab.analysis.comparison import Comparison, Outcome

FrontStanding = Literal["front", "dominated", "open"]


@dataclass(frozen=True)
class FrontPoint:
    """Where a scheduler stands."""

    scheduler: str
    standing: FrontStanding
    dominated_by: list[str]


def pareto_front(labels: Sequence[str], comparisons: Sequence[Comparison]) -> list[FrontPoint]:
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


def conflicting(comparisons: Sequence[Comparison]) -> bool:
    """Whether some pair is better each in its own dimension: then the goal's weights make the choice."""
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
