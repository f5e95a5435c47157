"""The noise of a series of blocks: drift, correlation, order effects, outliers.

This module changes no verdict. Its findings are shown so that readers can judge the data behind a verdict;
outliers are named and kept. (Serial correlation does widen intervals: `blklab.analysis.statistics.serial`.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from blklab.analysis.statistics.intervals import standard_error, t_upper_tail
from blklab.analysis.statistics.linear_trend import TrendChange, linear_trend
from blklab.analysis.statistics.serial import neighbour_correlation, widening

FEWEST_FOR_OUTLIERS = 6
OUTLIER_DEVIATIONS = 5.0
"""Robust standard deviations from the median. The usual 3.5 (Iglewicz and Hoaglin, *How to Detect and Handle
Outliers*, 1993) is meant for normal noise; runs of a disk have longer tails."""
SMALLEST_OUTLIER = math.log(1.05)
"""Runs within 5 % of the median are never outliers, however steady the others are."""
MAD_TO_DEVIATION = 1.4826
"""Median absolute deviation to standard deviation, for normal values."""


@dataclass(frozen=True)
class Outlier:
    """A run far from the others of its scheduler."""

    scheduler: str
    block: int
    ratio: float
    """Its value over the median of its scheduler."""


@dataclass(frozen=True)
class Noise:
    """The noise of one metric under one workload."""

    blocks: int
    drift: TrendChange | None
    """Of the logarithm of the blocks' means. Comparisons within blocks are free of it."""
    first_run: TrendChange | None
    """Logarithm of a block's first run over its others, scheduler's effect removed: warm-up, caches."""
    correlation: float | None
    """Of neighbouring log ratios, the largest over all pairs of schedulers; None for few blocks."""
    widened_by: float
    """Largest factor by which serial correlation widened the interval of a pair."""
    outliers: list[Outlier]


def describe_noise(values: Mapping[str, Mapping[int, float]], order: Mapping[int, Sequence[str]]) -> Noise:
    """Describes the noise of one workload and metric.

    Args:
        values: Scheduler → block → value; values of zero are left out.
        order: Block → schedulers in the order in which they ran.
    """
    logs = _logarithms(values)
    residuals = _residuals(logs)
    levels = block_levels(values)
    series = _log_ratios(logs)
    correlations = [found for one in series if (found := neighbour_correlation(one)) is not None]
    return Noise(
        blocks=len(levels),
        drift=linear_trend(
            np.array([block for block, _ in levels], dtype=float), np.array([level for _, level in levels])
        ),
        first_run=_first_run_effect(residuals, order),
        correlation=max(correlations, default=None),
        widened_by=max((widening(one) for one in series), default=1.0),
        outliers=[outlier for name in logs for outlier in _outliers(name, logs[name])],
    )


def block_levels(values: Mapping[str, Mapping[int, float]]) -> list[tuple[int, float]]:
    """The speed of each block as a whole: block and mean logarithm, schedulers' own means removed."""
    residuals = _residuals(_logarithms(values))
    blocks: dict[int, list[float]] = {}
    for (_, block), residual in residuals.items():
        blocks.setdefault(block, []).append(residual)
    return [(block, sum(found) / len(found)) for block, found in sorted(blocks.items())]


def _logarithms(values: Mapping[str, Mapping[int, float]]) -> dict[str, dict[int, float]]:
    return {
        name: {block: math.log(value) for block, value in present.items() if value > 0}
        for name, present in values.items()
    }


def _residuals(logs: Mapping[str, Mapping[int, float]]) -> dict[tuple[str, int], float]:
    """By scheduler and block. Schedulers may have left early, so each is measured from its own mean."""
    residuals = {}
    for name, own in logs.items():
        for block, value in own.items():
            residuals[name, block] = value - sum(own.values()) / len(own)
    return residuals


def _log_ratios(logs: Mapping[str, Mapping[int, float]]) -> list[list[float]]:
    """The series of every pair of schedulers over the blocks that both have."""
    names = list(logs)
    series = []
    for index, first in enumerate(names):
        for second in names[index + 1 :]:
            shared = sorted(logs[first].keys() & logs[second].keys())
            if len(shared) > 1:
                series.append([logs[first][block] - logs[second][block] for block in shared])
    return series


def _first_run_effect(
    residuals: Mapping[tuple[str, int], float], order: Mapping[int, Sequence[str]]
) -> TrendChange | None:
    differences = []
    for block, names in order.items():
        present = [residuals[name, block] for name in names if (name, block) in residuals]
        if len(present) > 1 and names and (names[0], block) in residuals:
            differences.append(present[0] - sum(present[1:]) / (len(present) - 1))
    if len(differences) < 4:
        return None
    values = np.array(differences)
    center, error = float(values.mean()), standard_error(values)
    if error == 0.0:
        return TrendChange(center, 1.0 if abs(center) <= 1e-12 else 0.0)
    return TrendChange(center, min(1.0, 2 * t_upper_tail(abs(center) / error, len(values) - 1)))


def _outliers(name: str, logs: Mapping[int, float]) -> list[Outlier]:
    if len(logs) < FEWEST_FOR_OUTLIERS:
        return []
    blocks = sorted(logs)
    values = np.array([logs[block] for block in blocks])
    median = float(np.median(values))
    deviation = MAD_TO_DEVIATION * float(np.median(np.abs(values - median)))
    if deviation <= 1e-12:
        return []
    return [
        Outlier(name, block, math.exp(value - median))
        for block, value in zip(blocks, values.tolist(), strict=True)
        if abs(value - median) > max(OUTLIER_DEVIATIONS * deviation, SMALLEST_OUTLIER)
    ]
