"""Ratios seen from the other side."""

from __future__ import annotations


def reciprocal_interval(low: float | None, high: float | None) -> tuple[float | None, float | None]:
    """The bounds of 1/x from those of x, which is positive: they change places.

    A bound that is unknown, or so small that it is zero, leaves its counterpart unknown.
    """
    return (1 / high if high else None, 1 / low if low else None)
