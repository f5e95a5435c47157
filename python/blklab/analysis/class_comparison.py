"""Two schedulers over all drives of a class: the mean, and what a new drive may be expected to do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from blklab.analysis.comparison import PairwiseComparison
from blklab.analysis.drives import Drive
from blklab.analysis.metrics import Metric
from blklab.analysis.statistics.population import PopulationDifference
from blklab.quantities.ratios import reciprocal_interval

NewDrive = Literal["better", "no worse", "worse", "equal", "open"]
"""For a new drive: surely better, at least not worse by more than the margin, surely worse, surely equal
within the margin, or none of these."""


@dataclass(frozen=True)
class DriveRatio:
    """First over second on one drive, as its own experiment found it."""

    drive: Drive
    run_id: str
    n: int
    """Blocks or rounds."""
    ratio: float
    ci_low: float | None
    ci_high: float | None


@dataclass(frozen=True, kw_only=True)
class ClassComparison:
    """Two schedulers under one workload over all drives, seen from the first: first over second."""

    mean: PairwiseComparison
    """The mean over drives; `n` counts them."""
    spread: float | None
    """Standard deviation between drives of the true log ratio; None for a single drive."""
    new_low: float | None
    new_high: float | None
    """Interval for the true ratio on a new drive; None for fewer than three drives."""
    margin: float
    higher_is_better: bool
    chance_better: float | None
    """Probability that the first is better on a new drive."""
    drives: Sequence[DriveRatio]

    @property
    def new_drive(self) -> NewDrive:
        """The first scheduler on a new drive, by the interval for it."""
        if self.new_low is None or self.new_high is None:
            return "open"
        low, high = (
            (self.new_low, self.new_high) if self.higher_is_better else (1 / self.new_high, 1 / self.new_low)
        )
        worst = 1 / (1 + self.margin)
        if worst <= low and high <= 1 + self.margin:
            return "equal"
        if low > 1:
            return "better"
        if high < 1:
            return "worse"
        return "no worse" if low >= worst else "open"

    def seen_from(self, label: str) -> ClassComparison:
        """The same with `label` first."""
        if label == self.mean.first:
            return self
        low, high = reciprocal_interval(self.new_low, self.new_high)
        return ClassComparison(
            mean=self.mean.seen_from(label),
            spread=self.spread,
            new_low=low,
            new_high=high,
            margin=self.margin,
            higher_is_better=self.higher_is_better,
            chance_better=None if self.chance_better is None else 1 - self.chance_better,
            drives=[_turned(one) for one in self.drives],
        )


def class_comparison(
    mean: PairwiseComparison,
    metric: Metric,
    difference: PopulationDifference,
    drives: Sequence[DriveRatio],
    *,
    margin: float,
    confidence: float,
) -> ClassComparison:
    """A comparison of means with what it predicts.

    Args:
        mean: Of the class.
        metric: Its metric.
        difference: The drives' differences that it rests on.
        drives: These differences one by one.
        margin: Ratios between 1/(1+margin) and 1+margin count as equal.
        confidence: Of the interval for a new drive.
    """
    found = difference.prediction(confidence)
    higher = metric.better == "higher"
    above = difference.chance_above(0.0)
    return ClassComparison(
        mean=mean,
        spread=difference.spread,
        new_low=None if found is None else math.exp(found[0]),
        new_high=None if found is None else math.exp(found[1]),
        margin=margin,
        higher_is_better=higher,
        chance_better=above if above is None or higher else 1 - above,
        drives=drives,
    )


def _turned(one: DriveRatio) -> DriveRatio:
    return DriveRatio(
        one.drive, one.run_id, one.n, 1 / one.ratio, *reciprocal_interval(one.ci_low, one.ci_high)
    )
