"""Differences within blocks, on the log scale.

Two schedulers of one block ran next to one another in random order, under the same seed. Their log ratio
is free of whatever the block as a whole suffered, so that a drifting machine widens nothing and biases
nothing. The mean of the log ratios gets Student's t interval. A difference is only believed if, besides,
the randomisation test agrees: under no effect the order within a block was a coin toss, hence each log
ratio could as well have had the other sign (Fisher, *The Design of Experiments*, 1935, section 21). That
test assumes nothing about the noise but what the plan itself did.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from blklab.statistics.intervals import standard_error, t_quantile, t_upper_tail
from blklab.statistics.serial import widening

MAX_EXACT_BLOCKS = 15
"""Up to here all sign patterns are enumerated (16,384, as a pattern and its opposite give the same distance
from zero); beyond, a fixed random sample of them is used."""
SAMPLED_SIGN_PATTERNS = 50_000


@dataclass(frozen=True)
class PairedDifference:
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

    def half_width(self, confidence: float) -> float:
        """Half of the width of the interval for the log ratio; infinite for a single block."""
        if self.n < 2:
            return math.inf
        return t_quantile(1 - (1 - confidence) / 2, self.n - 1) * self.standard_error

    def ratio_interval(self, confidence: float) -> tuple[float, float] | None:
        """Two-sided interval for the ratio; nothing for too few blocks."""
        half = self.half_width(confidence)
        if not math.isfinite(half):
            return None
        return math.exp(self.log_ratio - half), math.exp(self.log_ratio + half)


def paired_difference(
    first: Sequence[float], second: Sequence[float], *, margin: float, smallest_level: float
) -> PairedDifference:
    """Compares two series of positive figures, paired by position.

    Args:
        first: One figure a block.
        second: The other's figures for the same blocks.
        margin: Ratios between 1/(1+margin) and 1+margin count as equal.
        smallest_level: The strictest level at which p values will be judged (after Holm's correction). The
            randomisation test takes part only if it could reach that level with so few blocks.
    """
    ratios = np.log(np.asarray(first, dtype=float)) - np.log(np.asarray(second, dtype=float))
    n = len(ratios)
    if n == 0:
        raise ValueError("no block has both series")
    center = float(ratios.mean())
    if n < 2:
        return PairedDifference(n, center, math.nan, 1.0, 1.0)
    error = standard_error(ratios) * widening(ratios.tolist())
    bound = math.log1p(margin)
    if error == 0.0:
        identical = abs(center) <= 1e-12
        p_difference = 1.0 if identical else 0.0
        p_equivalence = 0.0 if abs(center) <= bound else 1.0
        return PairedDifference(n, 0.0 if identical else center, 0.0, p_difference, p_equivalence)
    freedom = n - 1
    p_difference = 2 * t_upper_tail(abs(center) / error, freedom)
    if 2.0 ** (1 - n) <= smallest_level:
        p_difference = max(p_difference, sign_flip_p(ratios))
    p_equivalence = t_upper_tail((bound - abs(center)) / error, freedom)
    return PairedDifference(n, center, error, p_difference, p_equivalence)


def sign_flip_p(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """Two-sided p value of the randomisation test on the mean of symmetric values."""
    n = len(values)
    observed = abs(float(values.sum())) * (1 - 1e-12)
    exceeding = int(np.count_nonzero(np.abs(_sign_patterns(n) @ values) >= observed))
    if n <= MAX_EXACT_BLOCKS:
        return float(exceeding / 2 ** (n - 1))
    # The observed pattern is one of those that could have been: it counts too.
    return (exceeding + 1) / (SAMPLED_SIGN_PATTERNS + 1)


@functools.lru_cache(maxsize=8)
def _sign_patterns(n: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """All patterns of n signs that begin with a plus, one a row; for many blocks a fixed random sample.

    Fixed, because the analysis of stored samples must give the same figures every time.
    """
    if n <= MAX_EXACT_BLOCKS:
        bits = (np.arange(2 ** (n - 1), 2**n)[:, None] >> np.arange(n)[::-1]) & 1
    else:
        bits = np.random.default_rng(20_210_927).integers(
            0, 2, size=(SAMPLED_SIGN_PATTERNS, n), dtype=np.int8
        )
    return (bits * 2 - 1).astype(float)
