"""Values that follow one another: their correlation, tested for and widened for.

Runs of a block share what the machine suffers, so their log ratios are mostly independent from block to
block. Where they are not (one scheduler slowly fills a cache, say), the mean of n ratios is worth fewer than
n independent ones, and an interval that ignores that is too narrow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

FEWEST_FOR_CORRELATION = 8
"""With fewer values the correlation of neighbours cannot be told from chance."""
LARGEST_CORRELATION = 0.9
ROUNDING = 1e-12
"""Differences of logarithms below this are rounding."""
_LEVEL_DEVIATE = 1.6448536269514722
"""Upper 5 % point of the normal distribution: the test for correlation is one-sided."""


def neighbour_correlation(values: Sequence[float]) -> float | None:
    """Correlation of each value with the next, free of the bias of short series; nothing if too short.

    The raw estimate of a series of n with correlation r is low by (1 + 4r)/n on average (Marriott and Pope,
    *Bias in the estimation of autocorrelations*, 1954).
    """
    return correlation_of(sums_of(values))


def raw_neighbour_correlation(values: Sequence[float]) -> float | None:
    """Correlation of each value with the next as it stands; nothing where there is no scatter."""
    sums = sums_of(values)
    around = sums.deviations
    return None if around == 0.0 else _raw_correlation(sums, around)


def widening(values: Sequence[float]) -> float:
    """Factor by which serial correlation widens the standard error of the mean; never below 1.

    With correlation r of neighbours, n values are worth n (1 - r)/(1 + r) independent ones (a process of
    first order; Bayley and Hammersley, *The "effective" number of independent observations*, 1946). Values
    whose correlation chance explains at a level of 5 % are left alone: the raw estimate for independent
    values is about normal with mean -1/n and variance 1/n (Box and Jenkins, *Time Series Analysis*, 1970).
    """
    return widening_of(sums_of(values))


@dataclass
class Sums:
    """What mean, variance and correlation of neighbours are computed from, value by value."""

    n: int = 0
    first: float = 0.0
    last: float = 0.0
    total: float = 0.0
    squares: float = 0.0
    products: float = 0.0
    """Of each value with the next."""
    largest: float = 0.0

    def add(self, value: float) -> None:
        """Takes in the next value."""
        if self.n == 0:
            self.first = value
        # Relative to the first value, so that a large common part costs no digits.
        shifted = value - self.first
        self.total += shifted
        self.squares += shifted * shifted
        self.products += self.last * shifted
        self.last = shifted
        self.largest = max(self.largest, abs(value))
        self.n += 1

    @property
    def mean(self) -> float:
        """Mean of the values so far."""
        return self.first + self.total / self.n

    @property
    def deviations(self) -> float:
        """Sum of squared deviations from the mean; exactly zero for equal values, whatever rounding did."""
        left = self.squares - self.total * self.total / self.n
        tolerance = ROUNDING * max(1.0, self.largest)
        return left if left > self.n * tolerance * tolerance else 0.0


def sums_of(values: Sequence[float]) -> Sums:
    """The sums of a whole series."""
    sums = Sums()
    for value in values:
        sums.add(float(value))
    return sums


def correlation_of(sums: Sums) -> float | None:
    """As `neighbour_correlation`."""
    n = sums.n
    if n < FEWEST_FOR_CORRELATION:
        return None
    around = sums.deviations
    if around == 0.0:
        return None
    raw = _raw_correlation(sums, around)
    return max(-LARGEST_CORRELATION, min(LARGEST_CORRELATION, raw + (1 + 4 * raw) / n))


def widening_of(sums: Sums) -> float:
    """As `widening`."""
    correlation = correlation_of(sums)
    if correlation is None or correlation <= 0:
        return 1.0
    by_chance = _LEVEL_DEVIATE / math.sqrt(sums.n)
    if _raw_correlation(sums, sums.deviations) + 1 / sums.n <= by_chance:
        return 1.0
    return math.sqrt((1 + correlation) / (1 - correlation))


def _raw_correlation(sums: Sums, around: float) -> float:
    # The first value, shifted, is zero: all but the first sum up to total, all but the last to total - last.
    mean = sums.total / sums.n
    return (sums.products - mean * (2 * sums.total - sums.last) + (sums.n - 1) * mean * mean) / around
