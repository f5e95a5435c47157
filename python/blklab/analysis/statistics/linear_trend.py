"""A change along a straight line, with its test."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from blklab.analysis.statistics.intervals import t_upper_tail

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TrendChange:
    """A change along a series, or from one part of it to another, with its test."""

    size: float
    """In the unit of the values."""
    p: float
    """Two-sided p value of no change."""


def linear_trend(times: Floats, values: Floats) -> TrendChange | None:
    """Change along the least-squares line from the first time to the last.

    Returns:
        None for fewer than four values or a single time.
    """
    n = len(values)
    spread = times - times.mean()
    weight = float(spread @ spread)
    if n < 4 or weight == 0:
        return None
    slope = float(spread @ values) / weight
    residuals = values - values.mean() - slope * spread
    left = float(residuals @ residuals)
    change = slope * float(times.max() - times.min())
    if left <= 1e-24 * n:
        return TrendChange(change, 1.0 if abs(change) <= 1e-12 else 0.0)
    error = math.sqrt(left / (n - 2) / weight)
    return TrendChange(change, min(1.0, 2 * t_upper_tail(abs(slope) / error, n - 2)))
