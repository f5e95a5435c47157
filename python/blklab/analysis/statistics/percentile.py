"""Percentiles of a sorted sample."""

from __future__ import annotations

import math
from collections.abc import Sequence


def percentile(ordered: Sequence[float], fraction: float) -> float:
    """The smallest value that at least this fraction does not exceed; nearest rank, without interpolation."""
    return ordered[max(0, math.ceil(fraction * len(ordered)) - 1)]
