"""Rows of the pictures of the two studies, and the statement that something matters."""

from __future__ import annotations

from collections.abc import Mapping

from blklab.studies.replication.pictures import IntervalRow
from blklab.studies.replication.result import ComparedValue, Estimate, Statement, StatementOutcome
from blklab.studies.replication.statements import estimate_text

MATTERS_FROM = 1.02
"""A ratio nearer to 1 than this makes no difference, as everywhere in blklab."""


def interval_row(label: str, quantity: Estimate, *, published: bool = False) -> IntervalRow:
    """A figure with its interval as a row."""
    return IntervalRow(label, quantity.value, quantity.low, quantity.high, published=published)


def rows_of(value: ComparedValue) -> list[IntervalRow]:
    """The published figure and ours, as far as there are any, one below the other."""
    both = (("published", value.published), ("ours", value.ours))
    return [
        interval_row(f"{value.name}, {origin}", quantity, published=origin == "published")
        for origin, quantity in both
        if quantity is not None
    ]


def matters(name: str, says: str, effects: Mapping[str, Estimate | None], *, why: str = "") -> Statement:
    """Somebody surely gets another amount; it fails where surely nobody does.

    Args:
        name: Of the statement.
        says: The statement.
        effects: What each party gets over what it had; nothing where it had nothing.
        why: What it comes from.
    """
    outcomes = [_changed(ratio) for ratio in effects.values() if ratio is not None]
    outcome: StatementOutcome = (
        "holds" if "holds" in outcomes else "undecided" if "undecided" in outcomes else "fails"
    )
    found = ", ".join(f"{party} {estimate_text(ratio)}" for party, ratio in effects.items() if ratio)
    return Statement(name, says, "ours", outcome, found, why)


def _changed(ratio: Estimate) -> StatementOutcome:
    low, high = (ratio.value if bound is None else bound for bound in (ratio.low, ratio.high))
    if low > MATTERS_FROM or high < 1 / MATTERS_FROM:
        return "holds"
    return "fails" if low >= 1 / MATTERS_FROM and high <= MATTERS_FROM else "undecided"
