"""Geometric means and their intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special


@dataclass(frozen=True)
class MeanInterval:
    """A geometric mean with a two-sided interval; the bounds are None for a single value."""

    n: int
    mean: float
    low: float | None
    high: float | None


def geometric_mean_interval(
    values: Sequence[float], confidence: float, *, widened_by: float = 1.0
) -> MeanInterval:
    """Student's t interval for the mean of the logarithms, transformed back.

    The scale is logarithmic because the effects of schedulers and drift are multiplicative. The ratio of two
    such means is the mean ratio of `blklab.analysis.statistics.paired`.

    Args:
        values: Positive; at least one.
        confidence: Coverage, such as 0.95.
        widened_by: Factor for serial correlation (`blklab.analysis.statistics.serial.widening`).
    """
    logs = np.log(np.asarray(values, dtype=float))
    center = float(logs.mean())
    if len(logs) < 2:
        return MeanInterval(len(logs), math.exp(center), None, None)
    half = t_quantile(1 - (1 - confidence) / 2, len(logs) - 1) * standard_error(logs) * widened_by
    return MeanInterval(len(logs), math.exp(center), math.exp(center - half), math.exp(center + half))


def standard_error(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """Standard error of the mean; exactly zero for values that are equal up to rounding."""
    if float(np.ptp(values)) <= 1e-12 * max(1.0, float(np.abs(values).max())):
        return 0.0
    return float(values.std(ddof=1)) / math.sqrt(len(values))


def t_quantile(probability: float, degrees_of_freedom: float) -> float:
    """Quantile of Student's t distribution; Welch's degrees of freedom are not a whole number."""
    # scipy.special rather than scipy.stats, which takes half a second to import.
    return float(special.stdtrit(degrees_of_freedom, probability))


def t_upper_tail(value: float, degrees_of_freedom: float) -> float:
    """Probability that Student's t exceeds a value."""
    return float(special.stdtr(degrees_of_freedom, -value))
