"""Differences within blocks, on the log scale.

The schedulers of a block run next to one another in random order, under the same seed. Their log ratio is
free of anything that affects the block as a whole, so a drifting machine neither widens nor biases it.
Interval and p values follow from the random order itself (`blklab.analysis.statistics.randomisation`) and
hold for noise of any kind. Student's t decides where there are too few blocks for their orders to reach the
level. Where neighbouring blocks are correlated, the larger of the two p values counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from blklab.analysis.statistics.difference import Difference
from blklab.analysis.statistics.intervals import standard_error, t_quantile, t_upper_tail
from blklab.analysis.statistics.randomisation import Floats, SubsetSums, reaches
from blklab.analysis.statistics.serial import widening


@dataclass(frozen=True)
class FixedDifference(Difference):
    """A mean log ratio of a number of blocks that was fixed in advance."""

    log_ratios: Floats = field(repr=False, compare=False)
    widened_by: float
    """Factor for serial correlation."""

    def log_interval(self, confidence: float) -> tuple[float, float] | None:
        """Two-sided interval for the log ratio; None for a single block."""
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
    """Compares two series of positive values, paired by position.

    Args:
        first: One value per block.
        second: The other's values for the same blocks.
        margin: Ratios between 1/(1+margin) and 1+margin count as equal.
        smallest_level: The strictest level at which the p values will be judged (after Holm's correction).
            The randomisation test decides if this number of blocks can reach that level.

    Raises:
        ValueError: if the series are empty.
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
        # The random order cannot see effects that linger; the widened t test can.
        correlated = widened_by > 1
        p_difference = max(by_order[0], p_difference) if correlated else by_order[0]
        p_equivalence = max(by_order[1], p_equivalence) if correlated else by_order[1]
    return FixedDifference(n, center, error, p_difference, p_equivalence, ratios, widened_by)
