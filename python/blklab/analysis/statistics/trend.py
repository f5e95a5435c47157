"""Drift of a series of runs: its trend by ranks and its serial correlation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from blklab.analysis.statistics.serial import raw_neighbour_correlation

MOST_RUNS_FOR_SLOPE = 1000
FEWEST_RUNS = 5
"""With four runs even a perfect order has p = 0.083: no drift can be detected."""


@dataclass(frozen=True)
class Trend:
    """The movement of a series along its order."""

    n: int
    tau: float
    """Kendall's: 1 where every run is above the one before, -1 where every one is below."""
    p: float
    slope: float
    """Per run, in the unit of the values: the median of all pairs' slopes (Theil and Sen)."""
    serial_correlation: float | None
    """Of neighbours (lag 1); None if there is no scatter."""


def trend_of(values: Sequence[float]) -> Trend | None:
    """Mann and Kendall's test of a trend, exact where there are no ties and not too many values.

    Args:
        values: In the order in which they were measured.

    Returns:
        None for fewer than `FEWEST_RUNS` values.
    """
    n = len(values)
    if n < FEWEST_RUNS:
        return None
    series = np.asarray(values, dtype=float)
    if float(np.ptp(series)) == 0:
        return Trend(n, 0.0, 1.0, 0.0, None)
    from scipy import stats  # noqa: PLC0415 - takes longer to import than all else; only long series need it

    tau, p = stats.kendalltau(np.arange(n), series)
    # Memory grows with the square of the number of runs, so long series are thinned out evenly.
    places = np.arange(n)[:: math.ceil(n / MOST_RUNS_FOR_SLOPE)]
    slope = float(stats.theilslopes(series[places], places)[0])
    correlation = raw_neighbour_correlation(values)
    return Trend(n, float(tau), 1.0 if math.isnan(p) else float(p), slope, correlation)
