"""The number of samples that a question would probably take."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from scipy import special

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


MOST_TIMES_AS_MANY = 10
"""An answer that takes more than so many times what was run is not worth waiting for."""
_TAIL = 0.1
"""Of the variance's distribution beyond each end of the range."""


@dataclass(frozen=True)
class MoreSamples:
    """The samples that a question would take in addition, from the interval of their variance."""

    least: int
    most: int | None
    """None beyond `MOST_TIMES_AS_MANY` times those that there are."""
    is_worth_it: bool
    """Whether even the least is not beyond."""


def range_of_more(more: int, present: int, missing: int = 0) -> MoreSamples:
    """The range of an estimate.

    Few samples tell little of how much they scatter, and the need grows with the square of that.

    Args:
        more: The estimate of the samples needed in addition.
        present: Samples that it rests on.
        missing: Samples without which nothing may be decided, however little they scatter.
    """
    freedom = max(1, present - 1)
    total = present + more
    low, high = (total * freedom / float(special.chdtri(freedom, tail)) for tail in (_TAIL, 1 - _TAIL))
    limit = MOST_TIMES_AS_MANY * present
    least = max(1, math.ceil(low - present))
    most = math.ceil(high - present)
    is_worth_it = least <= limit
    least = max(least, missing)
    return MoreSamples(least, None if most > limit else max(least, most), is_worth_it)
