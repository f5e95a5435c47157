"""Differences of two means, from independent samples or from matched pairs, by Student's t.

For figures whose plan is not ours: independent samples have Welch's test (Welch, *The Generalization of
"Student's" Problem when Several Different Population Variances are Involved*, Biometrika 34, 1947), which
does not suppose equal scatter; pairs have the one-sample test of their differences. Whether pairs are pairs
is the design's business, not this module's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from blklab.statistics.intervals import standard_error, t_quantile, t_upper_tail


@dataclass(frozen=True)
class MeanDifference:
    """Mean of the first minus that of the second, in the unit of the values."""

    n_first: int
    n_second: int
    estimate: float
    standard_error: float | None
    """Nothing where a sample of one leaves no scatter to see."""
    freedom: float

    def interval(self, confidence: float) -> tuple[float, float] | None:
        """Two-sided interval."""
        if self.standard_error is None:
            return None
        half = t_quantile(1 - (1 - confidence) / 2, self.freedom) * self.standard_error
        return self.estimate - half, self.estimate + half

    @property
    def p_difference(self) -> float:
        """Two-sided p value of no difference; 1 where nothing can be tested."""
        if self.standard_error is None:
            return 1.0
        if self.standard_error == 0:
            return 1.0 if abs(self.estimate) <= 1e-12 else 0.0
        return 2 * t_upper_tail(abs(self.estimate) / self.standard_error, self.freedom)

    def p_equivalence(self, bound: float) -> float:
        """Larger p value of two one-sided tests that the difference lies within ±`bound`."""
        if self.standard_error is None:
            return 1.0
        room = bound - abs(self.estimate)
        if self.standard_error == 0:
            return 0.0 if room >= 0 else 1.0
        return t_upper_tail(room / self.standard_error, self.freedom)

    def detectable(self, level: float, power: float) -> float | None:
        """The smallest true difference that a test at `level` would find with a chance of `power`.

        With the scatter and numbers seen here; the usual sum of two quantiles, which is close for more than
        a few degrees of freedom.
        """
        if self.standard_error is None:
            return None
        quantiles = t_quantile(1 - level / 2, self.freedom) + t_quantile(power, self.freedom)
        return quantiles * self.standard_error


def independent_difference(first: Sequence[float], second: Sequence[float]) -> MeanDifference:
    """Welch's comparison of two independent samples, each of at least one value."""
    one, other = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    estimate = float(one.mean() - other.mean())
    if len(one) < 2 or len(other) < 2:
        return MeanDifference(len(one), len(other), estimate, None, 0)
    squares = [standard_error(one) ** 2, standard_error(other) ** 2]
    total = sum(squares)
    if total == 0:
        return MeanDifference(len(one), len(other), estimate, 0.0, len(one) + len(other) - 2)
    freedom = total**2 / (squares[0] ** 2 / (len(one) - 1) + squares[1] ** 2 / (len(other) - 1))
    return MeanDifference(len(one), len(other), estimate, math.sqrt(total), freedom)


def matched_difference(first: Sequence[float], second: Sequence[float]) -> MeanDifference:
    """Comparison of two series paired by position, of at least one pair."""
    differences = np.asarray(first, dtype=float) - np.asarray(second, dtype=float)
    n = len(differences)
    estimate = float(differences.mean())
    if n < 2:
        return MeanDifference(n, n, estimate, None, 0)
    return MeanDifference(n, n, estimate, standard_error(differences), n - 1)


def standardised_difference(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Hedges' g: the difference in units of the pooled standard deviation, corrected for small samples.

    Hedges, *Distribution Theory for Glass's Estimator of Effect Size and Related Estimators*, 1981.
    """
    one, other = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    freedom = len(one) + len(other) - 2
    if len(one) < 2 or len(other) < 2:
        return None
    variance = ((len(one) - 1) * one.var(ddof=1) + (len(other) - 1) * other.var(ddof=1)) / freedom
    if variance <= 0:
        return None
    correction = 1 - 3 / (4 * freedom - 1)
    return float(correction * (one.mean() - other.mean()) / math.sqrt(variance))
