"""Statements out of figures: one constructor for each kind of claim.

Where runs were repeated, an interval decides, and what its bounds leave open is undecided. A model's single
run has no interval; then the figure itself decides.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict

from blklab.analysis.statistics.intervals import geometric_mean_interval
from blklab.quantities.formatting import rounded
from blklab.studies.replication.result import Origin, Outcome, Quantity, Statement

if TYPE_CHECKING:
    from typing_extensions import Unpack

CONFIDENCE = 0.95


def mean_of(values: Sequence[float]) -> Quantity:
    """Geometric mean of positive figures, with its interval where there are several.

    Figures that are all the same (a model without chance) have an interval of no width.
    """
    interval = geometric_mean_interval(values, CONFIDENCE)
    return Quantity(interval.mean, interval.low, interval.high)


def quantity_text(quantity: Quantity, unit: str = "") -> str:
    """``2.93 [2.22, 3.86] MiB/s``."""
    after = f" {unit}" if unit else ""
    if quantity.low is None or quantity.high is None:
        return f"{rounded(quantity.value)}{after}"
    half = (quantity.high - quantity.low) / 2
    bounds = ", ".join(
        rounded(bound, half, digits_of=quantity.value) for bound in (quantity.low, quantity.high)
    )
    return f"{rounded(quantity.value, half)} [{bounds}]{after}"


class Told(TypedDict, total=False):
    """What may be told of any statement."""

    origin: Origin
    """Whose it is; each constructor has the one that is usual for it."""
    why: str
    """What it comes from, or why ours differs."""


def within(
    name: str,
    says: str,
    quantity: Quantity,
    at_least: float,
    at_most: float,
    *,
    unit: str = "",
    **told: Unpack[Told],
) -> Statement:
    """A figure lies between bounds, which belong to the range."""
    outcome = _inside(quantity, at_least, at_most)
    return Statement(name, says, outcome=outcome, found=quantity_text(quantity, unit), **_OURS | told)


def greater(name: str, says: str, ratio: Quantity, than: float = 1.0, **told: Unpack[Told]) -> Statement:
    """A ratio is greater than a number; one that is just that number is not."""
    low, high = _low(ratio), _high(ratio)
    outcome: Outcome = "holds" if low > than else "fails" if high <= than else "undecided"
    return Statement(name, says, outcome=outcome, found=quantity_text(ratio), **_PUBLISHED | told)


def equal(name: str, says: str, ratio: Quantity, *, margin: float = 0.02, **told: Unpack[Told]) -> Statement:
    """A ratio is 1 within a margin: the absence of an effect."""
    outcome = _inside(ratio, 1 / (1 + margin), 1 + margin)
    return Statement(name, says, outcome=outcome, found=quantity_text(ratio), **_OURS | told)


def ordered(
    name: str, says: str, figures: Mapping[str, Quantity], *, unit: str = "", **told: Unpack[Told]
) -> Statement:
    """Figures come in this order, the greatest first: decided where neighbours' intervals do not overlap."""
    entries = list(figures.values())
    steps = [_inside_order(one, other) for one, other in itertools.pairwise(entries)]
    outcome: Outcome = "fails" if "fails" in steps else "undecided" if "undecided" in steps else "holds"
    found = ", ".join(f"{label} {quantity_text(one, unit)}" for label, one in figures.items())
    return Statement(name, says, outcome=outcome, found=found, **_PUBLISHED | told)


_OURS: Told = {"origin": "ours"}
_PUBLISHED: Told = {"origin": "published"}


def _inside_order(greater_one: Quantity, lesser: Quantity) -> Outcome:
    if _low(greater_one) > _high(lesser):
        return "holds"
    return "fails" if _high(greater_one) < _low(lesser) else "undecided"


def _inside(quantity: Quantity, at_least: float, at_most: float) -> Outcome:
    low, high = _low(quantity), _high(quantity)
    if at_least <= low and high <= at_most:
        return "holds"
    return "fails" if high < at_least or low > at_most else "undecided"


def _low(quantity: Quantity) -> float:
    return quantity.value if quantity.low is None else quantity.low


def _high(quantity: Quantity) -> float:
    return quantity.value if quantity.high is None else quantity.high
