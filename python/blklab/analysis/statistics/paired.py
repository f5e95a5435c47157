"""Differences within blocks, on the log scale.

Two schedulers of one block ran next to one another in random order, under the same seed. Their log ratio is
free of whatever the block as a whole suffered, so that a drifting machine widens nothing and biases nothing.
Interval and p values are those of the random order itself (`blklab.analysis.statistics.randomisation`), which
hold for noise of any kind. With so few blocks that their orders could never reach the level, and besides
where neighbouring blocks resemble one another, Student's t decides.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from blklab.analysis.statistics.intervals import standard_error, t_quantile, t_upper_tail
from blklab.analysis.statistics.randomisation import Floats, SubsetSums, reaches
from blklab.analysis.statistics.serial import widening


@dataclass(frozen=True)
class PairedDifference(ABC):
    """The mean log ratio of two series, over the blocks that have both."""

    n: int
    log_ratio: float
    standard_error: float
    """Of the mean log ratio, widened for serial correlation; not a number for a single block."""
    p_difference: float
    """Two-sided: the ratio is not 1."""
    p_equivalence: float
    """Larger of two one-sided tests: the ratio is not within the margin."""

    @property
    def ratio(self) -> float:
        """Geometric mean of first over second."""
        return math.exp(self.log_ratio)

    @abstractmethod
    def log_interval(self, confidence: float) -> tuple[float, float] | None:
        """Two-sided interval for the log ratio; nothing for too few blocks."""

    def ratio_interval(self, confidence: float) -> tuple[float, float] | None:
        """Two-sided interval for the ratio; nothing for too few blocks."""
        found = self.log_interval(confidence)
        return None if found is None else (math.exp(found[0]), math.exp(found[1]))


@dataclass(frozen=True)
class FixedDifference(PairedDifference):
    """A mean log ratio of a number of blocks that was fixed beforehand."""

    log_ratios: Floats = field(repr=False, compare=False)
    widened_by: float
    """Factor for serial correlation."""

    def log_interval(self, confidence: float) -> tuple[float, float] | None:
        """Two-sided interval for the log ratio; nothing for a single block."""
        if self.n < 2:
            return None
        level = 1 - confidence
        if self.standard_error > 0 and reaches(self.n, level):
            low, high = SubsetSums(self.log_ratios).interval(confidence)
            return _stretched(self.log_ratio, low, high, self.widened_by)
        half = t_quantile(1 - level / 2, self.n - 1) * self.standard_error
        return self.log_ratio - half, self.log_ratio + half


def _stretched(center: float, low: float, high: float, factor: float) -> tuple[float, float]:
    """An interval stretched about its center."""
    return center - (center - low) * factor, center + (high - center) * factor


def paired_difference(
    first: Sequence[float], second: Sequence[float], *, margin: float, smallest_level: float
) -> FixedDifference:
    """Compares two series of positive figures, paired by position.

    Args:
        first: One figure a block.
        second: The other's figures for the same blocks.
        margin: Ratios between 1/(1+margin) and 1+margin count as equal.
        smallest_level: The strictest level at which p values will be judged (after Holm's correction). The
            randomisation test decides if it could reach that level with so few blocks.
    """
    ratios = np.log(np.asarray(first, dtype=float)) - np.log(np.asarray(second, dtype=float))
    n = len(ratios)
    if n == 0:
        raise ValueError("no block has both series")
    center = float(ratios.mean())
    if n < 2:
        return FixedDifference(n, center, math.nan, 1.0, 1.0, ratios, 1.0)
    widened_by = widening(ratios.tolist())
    error = standard_error(ratios) * widened_by
    bound = math.log1p(margin)
    if error == 0.0:
        identical = abs(center) <= 1e-12
        p_difference = 1.0 if identical else 0.0
        p_equivalence = 0.0 if abs(center) <= bound else 1.0
        center = 0.0 if identical else center
        return FixedDifference(n, center, 0.0, p_difference, p_equivalence, ratios, 1.0)
    p_difference = 2 * t_upper_tail(abs(center) / error, n - 1)
    p_equivalence = t_upper_tail((bound - abs(center)) / error, n - 1)
    if reaches(n, smallest_level):
        sums = SubsetSums(ratios)
        by_order = sums.p_difference(), sums.p_equivalence(bound)
        # The order knows nothing of effects that linger: there the widened t test has its say, too.
        correlated = widened_by > 1
        p_difference = max(by_order[0], p_difference) if correlated else by_order[0]
        p_equivalence = max(by_order[1], p_equivalence) if correlated else by_order[1]
    return FixedDifference(n, center, error, p_difference, p_equivalence, ratios, widened_by)
