"""The difference of two schedulers as it was known after each round."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from blklab.analysis.designs import Design
from blklab.analysis.statistics.series import Values

MOST_LOOKS = 30
"""Looks that are drawn; those between them would hardly differ."""


@dataclass(frozen=True)
class Look:
    """The ratio of two schedulers after some rounds."""

    rounds: int
    ratio: float
    low: float | None
    high: float | None
    """Interval at the experiment's confidence; None if there were too few rounds."""


def looks(first: Values, second: Values, design: Design) -> list[Look]:
    """First over second after about `MOST_LOOKS` numbers of rounds, evenly spread; the last is after all.

    Args:
        first: Round → value of one scheduler; a value may cover the rounds up to the next one.
        second: The other's.
        design: The workload's, which says what an interval is worth.
    """
    rounds = sorted(first.keys() & second.keys())
    covered = min((later - earlier for earlier, later in itertools.pairwise(rounds)), default=1)
    nr_looks = min(MOST_LOOKS, len(rounds))
    ends = sorted({math.ceil(len(rounds) * look / nr_looks) for look in range(1, nr_looks + 1)})
    found = []
    for end in ends:
        seen = rounds[:end]
        difference = design.difference(
            {number: first[number] for number in seen}, {number: second[number] for number in seen}
        )
        if difference is not None and math.isfinite(difference.log_ratio):
            low, high = difference.ratio_interval(design.confidence) or (None, None)
            found.append(Look(seen[-1] + covered, difference.ratio, low, high))
    return found
