"""The number of samples that a question would probably take."""

from __future__ import annotations

import math
from collections.abc import Callable

MOST_SAMPLES = 10_000
"""A question that would take more is not worth an answer; the number is then None."""

WidthFactor = Callable[[int], float]
"""Number of samples → half the width of an interval, in standard errors of the mean."""


def samples_needed(room: float, deviation: float, factor: WidthFactor) -> int | None:
    """The smallest number of samples, at least two, whose interval is narrower than `room` to each side.

    Args:
        room: For a difference its log ratio as estimated so far; for equality the distance (as a logarithm)
            from the estimate to the nearer end of the margin.
        deviation: Standard deviation of the log ratios of single samples.
        factor: Of the design's interval, at a level corrected for multiplicity.

    Returns:
        None beyond `MOST_SAMPLES`.
    """

    def enough(n: int) -> bool:
        return factor(n) * deviation / math.sqrt(n) < room

    high = 2
    while not enough(high):
        high *= 2
        if high > MOST_SAMPLES:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        if middle >= 2 and enough(middle):
            high = middle
        else:
            low = middle
    return high
