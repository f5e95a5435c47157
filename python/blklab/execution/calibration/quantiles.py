"""Typical and large errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median


def median_and_95th(errors: Sequence[float]) -> tuple[float, float]:
    """Median and 95th percentile of at least one error."""
    ordered = sorted(errors)
    return median(ordered), ordered[math.ceil(0.95 * len(ordered)) - 1]
