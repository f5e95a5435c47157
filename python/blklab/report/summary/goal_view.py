"""The goal as reports show it: every scheduler against the reference, within blocks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from blklab.analysis.metrics import METRICS
from blklab.quantities.formatting import join_names, metric_title
from blklab.quantities.ratios import reciprocal_interval
from blklab.report.documents.findings import GoalPart
from blklab.report.documents.parts import PairPart


@dataclass(frozen=True)
class Ratio:
    """A scheduler over the reference; the reference itself is 1 without an interval."""

    value: float
    low: float | None
    high: float | None


def ratios_to_reference(goal: GoalPart, pairs: Iterable[PairPart], metric: str) -> dict[str, Ratio]:
    """By scheduler, for one metric (``goal`` for the score itself); the reference is among them."""
    ratios = {goal.reference: Ratio(1.0, None, None)}
    for pair in pairs:
        if pair.metric != metric:
            continue
        if pair.second == goal.reference:
            ratios[pair.first] = Ratio(pair.ratio, pair.ci_low, pair.ci_high)
        elif pair.first == goal.reference:
            ratios[pair.second] = Ratio(1 / pair.ratio, *reciprocal_interval(pair.ci_low, pair.ci_high))
    return ratios


def plotted_dimensions(goal: GoalPart) -> tuple[str, str] | None:
    """The goal's two heaviest metrics, which the plot of the front shows; None if it has only one."""
    ordered = sorted(goal.dimensions, key=lambda name: -goal.weights.get(name, 0))
    return (ordered[0], ordered[1]) if len(ordered) > 1 else None


def better_high(metric: str) -> bool:
    """Whether a higher figure is better."""
    return METRICS[metric].better == "higher"


def weights_text(goal: GoalPart) -> str:
    """``throughput 1/2, latency p99 1/2`` as percentages."""
    total = sum(goal.weights.values())
    return ", ".join(
        f"{metric_title(name)} {100 * weight / total:.3g} %" for name, weight in goal.weights.items()
    )


def front_sentence(goal: GoalPart) -> str:
    """Schedulers on the front and off it, and whether the choice depends on the weights."""
    groups = {
        standing: [point.scheduler for point in goal.front if point.standing == standing]
        for standing in ("front", "dominated", "open")
    }
    parts = []
    if groups["front"]:
        parts.append(f"on the front: {join_names(groups['front'])}")
    if groups["dominated"]:
        parts.append(
            "dominated: "
            + ", ".join(
                f"{point.scheduler} (by {join_names(point.dominated_by)})"
                for point in goal.front
                if point.dominated_by
            )
        )
    if groups["open"]:
        parts.append(f"open: {join_names(groups['open'])}")
    conflict = (
        "these goals conflict, so the choice depends on the weights"
        if goal.conflict
        else "no two schedulers beat each other in different metrics, so the goals do not conflict"
        if not groups["open"]
        else "whether the goals conflict is not settled"
    )
    return f"{'; '.join(parts)}; {conflict}"
