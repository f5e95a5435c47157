"""Builds picture rows for both hdparm studies, and the statement that a setting matters."""

from __future__ import annotations

from collections.abc import Mapping

from blklab.labs.studies.replication.pictures import IntervalRow
from blklab.labs.studies.replication.result import ComparedValue, Estimate, Statement, StatementOutcome
from blklab.labs.studies.replication.statements import estimate_text

MATTERS_FROM = 1.02
"""Ratios closer to 1 than this do not matter, as everywhere in blklab."""


def interval_row(label: str, quantity: Estimate, *, published: bool = False) -> IntervalRow:
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


def matters(name: str, says: str, effects: Mapping[str, Estimate | None], *, why: str = "") -> Statement:
    """States that a setting changes the I/O of at least one job; fails if it certainly changes none.

    Args:
        name: Name of the statement.
        says: Text of the statement.
        effects: For each job, its I/O over that without the change; None if the job did none.
        why: The cause.
    """
    outcomes = [_changed(ratio) for ratio in effects.values() if ratio is not None]
    outcome: StatementOutcome = (
        "holds" if "holds" in outcomes else "undecided" if "undecided" in outcomes else "fails"
    )
    found = ", ".join(f"{job} {estimate_text(ratio)}" for job, ratio in effects.items() if ratio)
    return Statement(name, says, "ours", outcome, found, why)


def _changed(ratio: Estimate) -> StatementOutcome:
    low, high = (ratio.value if bound is None else bound for bound in (ratio.low, ratio.high))
    if low > MATTERS_FROM or high < 1 / MATTERS_FROM:
        return "holds"
    return "fails" if low >= 1 / MATTERS_FROM and high <= MATTERS_FROM else "undecided"
