"""Step-down corrections for several questions to the same data."""

from __future__ import annotations

import functools
from collections.abc import Sequence


def holm(p_values: Sequence[float], possibly_true: Sequence[int] = ()) -> list[float]:
    """Adjusted p values, in the order given; to be compared with the family's level directly.

    Holm, *A Simple Sequentially Rejective Multiple Test Procedure*, 1979. The chance of any false claim in
    the family stays below the level whatever the dependence between the questions.

    Args:
        p_values: Of all hypotheses of the family.
        possibly_true: The numbers of them that can be true at once; empty if any number can. The smallest
            p value left is corrected for the largest such number rather than for all that are left
            (Shaffer, *Modified Sequentially Rejective Multiple Test Procedures*, 1986).
    """
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted = [1.0] * len(p_values)
    running = 0.0
    for rank, index in enumerate(order):
        left = len(p_values) - rank
        true = max((number for number in possibly_true if number <= left), default=0) or left
        running = max(running, min(1.0, true * p_values[index]))
        adjusted[index] = running
    return adjusted


def numbers_of_equal_pairs(group_sizes: Sequence[int]) -> list[int]:
    """The possible numbers of equal pairs, for groups in which all members are compared with one another.

    Equality is transitive: of four members six pairs can be equal, or three (three members), or two (two and
    two), or one, but never four or five.
    """
    possible = {0}
    for size in group_sizes:
        possible = {one + other for one in possible for other in _within(size)}
    return sorted(possible)


@functools.lru_cache(maxsize=64)
def _within(size: int) -> frozenset[int]:
    """Σ m(m-1)/2 over the parts of every partition."""
    if size == 0:
        return frozenset({0})
    return frozenset(
        part * (part - 1) // 2 + rest for part in range(1, size + 1) for rest in _within(size - part)
    )
