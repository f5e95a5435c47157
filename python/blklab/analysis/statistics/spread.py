"""Comparing the scatter of two samples."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy import special

from blklab.analysis.statistics.sample import Sample

FEWEST_VALUES = 4
"""With fewer values the kurtosis that the method rests on is meaningless."""


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


def spread_ratio(first: Sample, second: Sample) -> SpreadRatio | None:
    """Bonett's comparison of standard deviations, which allows for non-normal tails.

    Bonett, *Robust Confidence Interval for a Ratio of Standard Deviations*, Applied Psychological Measurement
    30, 2006: the kurtosis is pooled over both samples, about trimmed means.

    Returns:
        None if a sample has fewer than `FEWEST_VALUES` values or no scatter.
    """
    samples = (first, second)
    if min(sample.n for sample in samples) < FEWEST_VALUES:
        return None
    if min(sample.variance for sample in samples) <= 0:
        return None
    fourth = sum(sample.fourth_powers for sample in samples)
    second_moment = sum((sample.n - 1) * sample.variance for sample in samples)
    kurtosis = sum(sample.n for sample in samples) * fourth / second_moment**2
    square = sum((kurtosis - (sample.n - 3) / sample.n) / (sample.n - 1) for sample in samples)
    correction = 1.0
    if first.n != second.n:
        z = float(special.ndtri(0.975))
        sizes = [sample.n / (sample.n - z) for sample in samples]
        correction = sizes[0] / sizes[1]
    log_ratio = 0.5 * math.log(correction * first.variance / second.variance)
    return SpreadRatio(log_ratio, 0.5 * math.sqrt(max(0.0, square)))
