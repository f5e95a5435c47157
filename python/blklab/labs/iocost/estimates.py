"""Figures and their intervals from the rounds' runs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict
from scipy import special

from blklab.analysis.statistics.intervals import geometric_mean_interval
from blklab.analysis.statistics.linear_trend import linear_trend
from blklab.spec.experiment import DEFAULT_CONFIDENCE

LEAST_ROUNDS = 3
LEAST_RATE_ERROR = 0.002
"""Of a logarithm: a rate counted over a second or two is not better known, however well runs agree."""
LEAST_LATENCY_ERROR = 0.0045
"""Likewise: a bin of a histogram is up to 1.6 % wide."""
_CERTAIN_P = 0.01
_NOTABLE_CHANGE = 0.05


class Estimate(BaseModel):
    """A figure with its 95 % interval."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    """As in ``io.cost.model`` or ``io.cost.qos``."""
    value: float
    """Bytes a second, I/Os a second, or microseconds."""
    low: float
    high: float
    load: str
    rounds: list[float]
    """The value of each round, in order."""
    change: float | None
    """From the first round to the last, relative, along a straight line; None if chance may explain it."""

    @property
    def whole(self) -> int:
        """The value as the kernel takes it."""
        return max(1, round(self.value))

    def remark(self) -> str | None:
        """A note for the reader if the figure wandered."""
        if self.change is None:
            return None
        return (
            f"{self.name} changed by {100 * self.change:+.0f} % from the first round to the last: the disk is"
            " not in a steady state, so measure for longer (--runtime, --rounds)"
        )


def estimated(
    name: str,
    values: Sequence[float],
    *,
    load: str,
    factor: float = 1.0,
    least_error: float = LEAST_RATE_ERROR,
) -> Estimate:
    """The geometric mean of the rounds with Student's interval, times a factor.

    Args:
        name: The figure's.
        values: One for each round, positive; at least `LEAST_ROUNDS`.
        load: The load's name.
        factor: For a figure that is a multiple of what was measured.
        least_error: Of the logarithm, however well the rounds agree.
    """
    found = geometric_mean_interval(values, DEFAULT_CONFIDENCE)
    logs = np.log(np.asarray(values, dtype=float))
    least = least_error * float(special.ndtri((1 + DEFAULT_CONFIDENCE) / 2))
    half = max(least, math.inf if found.high is None else math.log(found.high / found.mean))
    trend = linear_trend(np.arange(len(logs), dtype=float), logs)
    wandered = trend is not None and trend.p < _CERTAIN_P and abs(trend.size) > _NOTABLE_CHANGE
    return Estimate(
        name=name,
        value=factor * found.mean,
        low=factor * found.mean * math.exp(-half),
        high=factor * found.mean * math.exp(half),
        load=load,
        rounds=[factor * value for value in values],
        change=math.expm1(trend.size) if trend is not None and wandered else None,
    )
