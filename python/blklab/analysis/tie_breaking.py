"""The choice among equals: the default, since nothing needs changing; else the cheaper in CPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blklab.analysis.comparison import PairwiseComparison, compare_all
from blklab.analysis.designs import Design
from blklab.analysis.goal_scores import combined_series, question_over_all
from blklab.analysis.metrics import metric_named
from blklab.analysis.statistics.intervals import geometric_mean_interval
from blklab.analysis.values import ExperimentValues


@dataclass(frozen=True)
class WasInForce:
    """It is the default: the one in force before the experiment."""


@dataclass(frozen=True)
class UsuallyInForce:
    """It was in force before on most drives of a class."""

    drives: int
    of: int


@dataclass(frozen=True)
class CheapestInCpu:
    """It takes the least CPU time per I/O."""

    pair: PairwiseComparison
    """It against the next cheapest."""


@dataclass(frozen=True)
class TieBreak:
    """One of several equals, and the reason for it."""

    label: str
    reason: WasInForce | UsuallyInForce | CheapestInCpu


def break_tie(values: ExperimentValues, equals: Sequence[str], design: Design) -> TieBreak | None:
    """Chooses among equals.

    The default is the scheduler that was in force before the experiment, without changed tunables. CPU time
    is that of the load's tasks per I/O over all workloads, compared within blocks; it decides if one of the
    equals is shown to be cheaper than every other.

    Returns:
        None if neither rule tells them apart.
    """
    default = next((label for label in values.in_force if label in equals), None)
    if default is not None:
        return TieBreak(default, WasInForce())
    metric = metric_named("cpu_per_io")
    series = {label: each for label, each in combined_series(values, metric).items() if label in equals}
    if len(series) < len(equals) or len(equals) < 2:
        return None
    question = question_over_all(metric, series)
    means = {
        label: geometric_mean_interval(list(each.values()), design.confidence).mean
        for label, each in series.items()
    }
    cheapest, *others = sorted(equals, key=lambda name: means[name])
    (pairs,) = compare_all([question], design, list(equals))
    seen = [pair.seen_from(cheapest) for pair in pairs if cheapest in (pair.first, pair.second)]
    against = {pair.second: pair for pair in seen}
    # An estimate alone would name one of two identical schedulers at random.
    if any(name not in against or against[name].outcome != "better" for name in others):
        return None
    return TieBreak(cheapest, CheapestInCpu(against[others[0]]))
