"""Means over a sample of drives, and the prediction for a new drive of the same population.

Each drive of a class has a true log ratio of its own, drawn from N(μ, τ²), and is measured with an error of
its own. All drives count alike, because the question is about drives and not about measurements: the mean
is that of the drives' estimates, tested by Student's t with one drive as one observation. Its level holds
however unequally the drives were measured, for any level up to 8 % (Bakirov and Székely, *Existence and
exact bounds of Student's test*, 2006; Ibragimov and Müller, *t-statistic based correlation and
heterogeneity robust inference*, 2010; one-sided tests at 5 %, which show equality, are covered up to 14
drives). Weights by inverse variances would be closer to optimal if the variances were known. Estimated from
a few blocks each they favour drives that scatter little by chance, and the level is exceeded
(docs/appendix/verdicts.md).

The prediction interval follows from the confidence distribution of the variance. The sample variance S² of
k drives estimates τ² + v, v being the mean of the squared standard errors, and (k-1)S²/(τ² + v) has a χ²
distribution. Each quantile of that distribution gives a τ² (at least zero), and with it a normal
distribution of a new drive's true value about the mean, with variance τ² + (τ² + v)/k. Their mixture is the
prediction. For v = 0 it is the classical interval, t with k-1 degrees of freedom (compare Nagashima, Noma
and Furukawa, *Prediction intervals for random-effects meta-analysis*, 2019, who use the distribution of
Cochran's Q).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from blklab.analysis.statistics.difference import Difference
from blklab.analysis.statistics.intervals import standard_error, t_quantile, t_upper_tail

FEWEST_DRIVES = 3
"""With fewer drives a spread between drives cannot be told from chance."""

_QUANTILES = 400
"""Quantiles of χ² that stand for its distribution."""
_TAIL = 1e-4
"""Finest step in its lower tail, in which the widest predictions lie."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class DriveEffect:
    """The log ratio of two schedulers on one drive."""

    log_ratio: float
    standard_error: float


@dataclass(frozen=True)
class PopulationDifference(Difference):
    """The mean log ratio over drives; `n` counts drives."""

    deviation: float
    """Standard deviation of the drives' estimates; not a number for a single drive."""
    noise: float
    """Root mean square of the drives' standard errors."""

    def log_interval(self, confidence: float) -> tuple[float, float] | None:
        """Two-sided interval for the mean of the population; None for a single drive."""
        if self.n < 2:
            return None
        half = t_quantile(1 - (1 - confidence) / 2, self.n - 1) * self.standard_error
        return self.log_ratio - half, self.log_ratio + half

    @property
    def spread(self) -> float | None:
        """Standard deviation of true values between drives (estimate of τ); None for a single drive."""
        if self.n < 2:
            return None
        return math.sqrt(max(0.0, self.deviation**2 - self.noise**2))

    def prediction(self, confidence: float) -> tuple[float, float] | None:
        """Interval for the true log ratio of a new drive; None for fewer than `FEWEST_DRIVES`."""
        if self.n < FEWEST_DRIVES:
            return None
        deviations, weights = self._predictive
        wanted = 1 - (1 - confidence) / 2
        low, high = 0.0, 40 * float(deviations.max())
        for _ in range(60):
            middle = (low + high) / 2
            below = middle <= 0 or float(weights @ special.ndtr(middle / deviations)) < wanted
            low, high = (middle, high) if below else (low, middle)
        return self.log_ratio - high, self.log_ratio + high

    def chance_above(self, log_bound: float) -> float | None:
        """Probability that a new drive's true log ratio exceeds a bound; None as for `prediction`."""
        if self.n < FEWEST_DRIVES:
            return None
        deviations, weights = self._predictive
        return float(weights @ special.ndtr((self.log_ratio - log_bound) / deviations))

    @property
    def _predictive(self) -> tuple[Floats, Floats]:
        """Standard deviations of a new drive about the mean, and the weight of each."""
        quantiles, weights = _chi_square(self.n - 1)
        total = np.maximum((self.n - 1) * self.deviation**2 / quantiles, self.noise**2)
        variances = total - self.noise**2 + total / self.n
        # Values that agree exactly predict themselves.
        return np.sqrt(np.maximum(variances, 1e-24)), weights


def population_difference(effects: Sequence[DriveEffect], *, margin: float) -> PopulationDifference:
    """The mean over drives.

    Args:
        effects: One for each drive; at least one.
        margin: Ratios between 1/(1+margin) and 1+margin count as equal.

    Raises:
        ValueError: if there is no drive.
    """
    if not effects:
        raise ValueError("no drive has both schedulers")
    values = np.array([effect.log_ratio for effect in effects])
    errors = np.array([effect.standard_error for effect in effects])
    n, center, noise = len(values), float(values.mean()), math.sqrt(float((errors**2).mean()))
    if n < 2:
        return PopulationDifference(n, center, math.nan, 1.0, 1.0, math.nan, noise)
    bound = math.log1p(margin)
    error = standard_error(values)
    if error == 0.0:
        identical = abs(center) <= 1e-12
        center = 0.0 if identical else center
        p_values = 1.0 if identical else 0.0, 0.0 if abs(center) <= bound else 1.0
        return PopulationDifference(n, center, 0.0, *p_values, 0.0, noise)
    p_difference = 2 * t_upper_tail(abs(center) / error, n - 1)
    p_equivalence = t_upper_tail((bound - abs(center)) / error, n - 1)
    deviation = error * math.sqrt(n)
    return PopulationDifference(n, center, error, p_difference, p_equivalence, deviation, noise)


@functools.lru_cache(maxsize=64)
def _chi_square(freedom: int) -> tuple[Floats, Floats]:
    """Quantiles of χ² and their weights: finer towards zero, where a wide prediction rests on few of them."""
    edges = np.concatenate(
        [[0.0], np.geomspace(_TAIL, 0.05, _QUANTILES // 4), np.linspace(0.05, 1, _QUANTILES)[1:]]
    )
    middles = (edges[:-1] + edges[1:]) / 2
    return special.chdtri(freedom, 1 - middles), np.diff(edges)
