"""Several questions to the same data: Holm's step-down correction."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p values, in the order given: compare them with the family's level directly.

    Holm, *A Simple Sequentially Rejective Multiple Test Procedure*, 1979. The chance of any false claim in
    the family stays below the level whatever the dependence between the questions.
    """
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted = [1.0] * len(p_values)
    running = 0.0
    for rank, index in enumerate(order):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = running
    return adjusted
