"""Ratios that are tested together: their intervals, corrected p values and outcomes.

A ratio is

* **equal** if two one-sided tests place it within the margin of practical equality;
* **better** (or worse) if it differs from 1 and its estimate lies beyond the margin;
* **undecided** otherwise, and always with fewer samples than the design requires.

The p values of a family are corrected by Holm's method.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from blklab.analysis.designs import Design
from blklab.analysis.metrics import Metric
from blklab.analysis.statistics.difference import Difference
from blklab.analysis.statistics.multiplicity import holm

Outcome = Literal["better", "worse", "equal", "undecided"]

OPPOSITE: dict[Outcome, Outcome] = {
    "better": "worse",
    "worse": "better",
    "equal": "equal",
    "undecided": "undecided",
}
"""An outcome as seen from the other side."""


@dataclass(frozen=True, kw_only=True)
class RatioEstimate:
    """A ratio of values within blocks, with its interval and its outcome."""

    workload: str
    metric: str
    n: int
    """Blocks that have all of the values."""
    ratio: float
    ci_low: float | None
    ci_high: float | None
    """Interval of this one ratio at the experiment's confidence."""
    p_adjusted: float
    """Of the difference, corrected for the questions of the family."""
    outcome: Outcome


@dataclass(frozen=True)
class Contrast:
    """A difference before correction for the others of its family."""

    workload: str
    metric: Metric
    difference: Difference


def estimate_family(
    contrasts: Sequence[Contrast], design: Design, possibly_true: Sequence[int] = ()
) -> list[RatioEstimate]:
    """Corrects the p values of a family for one another and decides each of its ratios.

    Args:
        contrasts: All contrasts of the family.
        design: The experiment's, asking as many questions as the family has.
        possibly_true: How many of the ratios can be 1 at once (`holm`).

    Returns:
        One estimate per contrast, in the same order.
    """
    different = holm([contrast.difference.p_difference for contrast in contrasts], possibly_true)
    equivalent = holm([contrast.difference.p_equivalence for contrast in contrasts])
    return [
        _estimate(contrast, p_different, p_equivalent, design)
        for contrast, p_different, p_equivalent in zip(contrasts, different, equivalent, strict=True)
    ]


def _estimate(contrast: Contrast, p_different: float, p_equivalent: float, design: Design) -> RatioEstimate:
    difference = contrast.difference
    low, high = difference.ratio_interval(design.confidence) or (None, None)
    return RatioEstimate(
        workload=contrast.workload,
        metric=contrast.metric.name,
        n=difference.n,
        ratio=difference.ratio,
        ci_low=low,
        ci_high=high,
        p_adjusted=p_different,
        outcome=_outcome(contrast, p_different, p_equivalent, design),
    )


def _outcome(contrast: Contrast, p_different: float, p_equivalent: float, design: Design) -> Outcome:
    difference = contrast.difference
    if difference.n < design.of(contrast.workload).fewest_samples:
        return "undecided"
    if p_equivalent < design.level:
        return "equal"
    if p_different < design.level and abs(difference.log_ratio) > math.log1p(design.margin):
        higher = difference.log_ratio > 0
        return "better" if higher == (contrast.metric.better == "higher") else "worse"
    return "undecided"
