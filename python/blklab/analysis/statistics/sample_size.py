"""How many blocks a question would probably take."""

from __future__ import annotations

import math
from collections.abc import Callable

from blklab.analysis.statistics.anytime import t_factor
from blklab.analysis.statistics.intervals import t_quantile

MOST_BLOCKS = 10_000
"""Beyond this a question is not worth an answer; the number is then given as nothing."""


def blocks_for_difference(
    log_ratio: float, deviation: float, level: float, *, anytime: bool = False
) -> int | None:
    """Blocks until a two-sided test at `level` would see a difference of this size.

    Args:
        log_ratio: The difference as it looks now.
        deviation: Standard deviation of the log ratios of single blocks.
        level: Level of the test, corrected for multiplicity.
        anytime: Whether the test is the one that may be looked at after every block.
    """

    def half_width(n: int) -> float:
        factor = t_factor(n, level) if anytime else t_quantile(1 - level / 2, n - 1)
        return factor * deviation / math.sqrt(n)

    return _smallest(lambda n: half_width(n) < abs(log_ratio))


def blocks_for_equality(
    log_ratio: float, deviation: float, level: float, margin: float, *, anytime: bool = False
) -> int | None:
    """Blocks until two one-sided tests at `level` would place the ratio within the margin."""
    room = math.log1p(margin) - abs(log_ratio)

    def half_width(n: int) -> float:
        factor = t_factor(n, level) if anytime else t_quantile(1 - level, n - 1)
        return factor * deviation / math.sqrt(n)

    return _smallest(lambda n: half_width(n) < room)


def _smallest(enough: Callable[[int], bool]) -> int | None:
    """The smallest number of blocks that is enough, by doubling and bisection; nothing beyond the bound."""
    high = 2
    while not enough(high):
        high *= 2
        if high > MOST_BLOCKS:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        if middle >= 2 and enough(middle):
            high = middle
        else:
            low = middle
    return high
