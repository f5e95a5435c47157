"""Comparing the scatter of two samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

FEWEST_VALUES = 4
"""Below, the kurtosis that the method rests on means nothing."""


@dataclass(frozen=True)
class SpreadRatio:
    """Ratio of two standard deviations, first over second."""

    log_ratio: float
    standard_error: float

    @property
    def ratio(self) -> float:
        """The ratio itself."""
        return math.exp(self.log_ratio)

    def interval(self, confidence: float) -> tuple[float, float]:
        """Two-sided interval of the ratio."""
        half = float(special.ndtri(1 - (1 - confidence) / 2)) * self.standard_error
        return math.exp(self.log_ratio - half), math.exp(self.log_ratio + half)

    @property
    def p_difference(self) -> float:
        """Two-sided p value of equal scatter."""
        if self.standard_error == 0:
            return 1.0 if self.log_ratio == 0 else 0.0
        return 2 * float(special.ndtr(-abs(self.log_ratio) / self.standard_error))


def spread_ratio(first: Sequence[float], second: Sequence[float]) -> SpreadRatio | None:
    """Bonett's comparison of standard deviations, which allows for tails that are not normal.

    Bonett, *Robust Confidence Interval for a Ratio of Standard Deviations*, Applied Psychological Measurement
    30, 2006: the kurtosis is pooled over both samples, about trimmed means.

    Returns:
        Nothing where a sample has fewer than `FEWEST_VALUES` values or no scatter.
    """
    samples = [np.asarray(values, dtype=float) for values in (first, second)]
    if min(len(values) for values in samples) < FEWEST_VALUES:
        return None
    variances = [float(values.var(ddof=1)) for values in samples]
    if min(variances) <= 0:
        return None
    centered = [values - _trimmed_mean(values) for values in samples]
    fourth = sum(float((values**4).sum()) for values in centered)
    second_moment = sum((len(v) - 1) * variance for v, variance in zip(samples, variances, strict=True))
    kurtosis = sum(map(len, samples)) * fourth / second_moment**2
    square = sum((kurtosis - (len(v) - 3) / len(v)) / (len(v) - 1) for v in samples)
    correction = 1.0
    if len(samples[0]) != len(samples[1]):
        z = float(special.ndtri(0.975))
        sizes = [len(values) / (len(values) - z) for values in samples]
        correction = sizes[0] / sizes[1]
    log_ratio = 0.5 * math.log(correction * variances[0] / variances[1])
    return SpreadRatio(log_ratio, 0.5 * math.sqrt(max(0.0, square)))


def _trimmed_mean(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """Mean without the share 1/(2√(n - 4)) at either end, as the method asks."""
    n = len(values)
    share = min(0.49, 1 / (2 * math.sqrt(max(1, n - 4))))
    cut = int(share * n)
    return float(np.sort(values)[cut : n - cut].mean())
