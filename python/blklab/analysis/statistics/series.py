"""Values of several schedulers over one experiment, and the values that two of them share."""

from __future__ import annotations

from collections.abc import Mapping

Values = Mapping[int, float]
"""Position in the experiment (the block's number) → value. A run that failed has no entry."""
Series = Mapping[str, Values]
"""Scheduler's label → its values."""


def shared_values(first: Values, second: Values) -> tuple[list[float], list[float]]:
    """The values of both at each position where both are positive, in the order of the positions.

    A value of zero (a run without I/O) has no logarithm.
    """
    positions = sorted(
        position for position in first.keys() & second.keys() if first[position] > 0 and second[position] > 0
    )
    return [first[position] for position in positions], [second[position] for position in positions]


def positive(values: Values) -> list[float]:
    """The values that have a logarithm."""
    return [value for value in values.values() if value > 0]
