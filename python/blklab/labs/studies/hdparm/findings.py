"""Builds rows of pictures."""

from __future__ import annotations

from blklab.labs.studies.replication.pictures import IntervalRow
from blklab.labs.studies.replication.result import ComparedValue, IntervalEstimate


def interval_row(label: str, quantity: IntervalEstimate, *, published: bool = False) -> IntervalRow:
    """A value with its interval as a row."""
    return IntervalRow(label, quantity.value, quantity.low, quantity.high, published=published)


def rows_of(value: ComparedValue) -> list[IntervalRow]:
    """The published value and ours, those that exist, one row each."""
    both = (("published", value.published), ("ours", value.ours))
    return [
        interval_row(f"{value.name}, {origin}", quantity, published=origin == "published")
        for origin, quantity in both
        if quantity is not None
    ]
