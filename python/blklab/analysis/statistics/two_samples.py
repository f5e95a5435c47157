"""Differences of two means, from independent samples or from matched pairs, by Student's t.

For values that others measured, by a plan of their own. Independent samples have Welch's test (Welch, *The
Generalization of "Student's" Problem when Several Different Population Variances are Involved*, Biometrika
34, 1947), which does not assume equal scatter; pairs have the one-sample test of their differences. The
caller decides whether the values are paired.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from blklab.analysis.statistics.intervals import standard_error, t_quantile, t_upper_tail
from blklab.analysis.statistics.sample import Sample


@dataclass(frozen=True)
class MeanDifference:
    """Mean of the first minus that of the second, in the unit of the values."""

    n_first: int
    n_second: int
    estimate: float
    standard_error: float | None
    """None if a sample has a single value and so no scatter."""
    freedom: float

    def interval(self, confidence: float) -> tuple[float, float] | None:
        """Two-sided interval."""
        if self.standard_error is None:
            return None
        half = t_quantile(1 - (1 - confidence) / 2, self.freedom) * self.standard_error
        return self.estimate - half, self.estimate + half

    @property
    def p_difference(self) -> float:
        """Two-sided p value of no difference; 1 if it cannot be tested."""
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

        It assumes the observed scatter and sample sizes, and uses the usual sum of two quantiles, which is
        close for more than a few degrees of freedom.
        """
        if self.standard_error is None:
            return None
        quantiles = t_quantile(1 - level / 2, self.freedom) + t_quantile(power, self.freedom)
        return quantiles * self.standard_error


def independent_difference(first: Sample, second: Sample) -> MeanDifference:
    """Welch's comparison of two independent samples."""
    if first.n < 2 or second.n < 2:
        return MeanDifference(first.n, second.n, first.mean - second.mean, None, 0)
    return difference_of_estimates(
        MeanEstimate(first.n, first.mean, first.standard_error),
        MeanEstimate(second.n, second.mean, second.standard_error),
    )


@dataclass(frozen=True)
class MeanEstimate:
    """A mean, or a difference of means, with a standard error of its own, of at least two values."""

    n: int
    value: float
    standard_error: float


def difference_of_estimates(first: MeanEstimate, second: MeanEstimate) -> MeanDifference:
    """Welch's comparison of two independent estimates, each with n - 1 degrees of freedom."""
    squares = [first.standard_error**2, second.standard_error**2]
    total = sum(squares)
    freedom: float = first.n + second.n - 2
    if total > 0:
        freedom = total**2 / (squares[0] ** 2 / (first.n - 1) + squares[1] ** 2 / (second.n - 1))
    return MeanDifference(first.n, second.n, first.value - second.value, math.sqrt(total), freedom)


def matched_difference(first: Sequence[float], second: Sequence[float]) -> MeanDifference:
    """Comparison of two series paired by position, of at least one pair."""
    differences = np.asarray(first, dtype=float) - np.asarray(second, dtype=float)
    n = len(differences)
    estimate = float(differences.mean())
    if n < 2:
        return MeanDifference(n, n, estimate, None, 0)
    return MeanDifference(n, n, estimate, standard_error(differences), n - 1)


def standardised_difference(first: Sample, second: Sample) -> float | None:
    """Hedges' g: the difference in units of the pooled standard deviation, corrected for small samples.

    Hedges, *Distribution Theory for Glass's Estimator of Effect Size and Related Estimators*, 1981.
    """
    freedom = first.n + second.n - 2
    if first.n < 2 or second.n < 2:
        return None
    variance = ((first.n - 1) * first.variance + (second.n - 1) * second.variance) / freedom
    if variance <= 0:
        return None
    correction = 1 - 3 / (4 * freedom - 1)
    return correction * (first.mean - second.mean) / math.sqrt(variance)
