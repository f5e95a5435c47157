"""Builds statements from estimates: one constructor for each kind of claim.

The interval of repeated runs decides; a statement is undecided if the interval leaves it open. A single run
of a model has no interval: its value decides.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict

from blklab.analysis.statistics.intervals import geometric_mean_interval
from blklab.labs.studies.replication.result import IntervalEstimate, Origin, Statement, StatementOutcome
from blklab.quantities.formatting import rounded

if TYPE_CHECKING:
    from typing_extensions import Unpack

CONFIDENCE = 0.95
MATTERS_FROM = 1.02
"""Ratios closer to 1 than this do not matter, as everywhere in blklab."""


def mean_of(values: Sequence[float]) -> IntervalEstimate:
    """Geometric mean of positive values, with its interval if there are several.

    The interval has no width if all values are the same, as those of a model without randomness are.
    """
    interval = geometric_mean_interval(values, CONFIDENCE)
    return IntervalEstimate(interval.mean, interval.low, interval.high)


def estimate_text(estimate: IntervalEstimate, unit: str = "") -> str:
    """``2.93 [2.22, 3.86] MiB/s``."""
    after = f" {unit}" if unit else ""
    if estimate.low is None or estimate.high is None:
        return f"{rounded(estimate.value)}{after}"
    half = (estimate.high - estimate.low) / 2
    bounds = ", ".join(
        rounded(bound, half, digits_of=estimate.value) for bound in (estimate.low, estimate.high)
    )
    return f"{rounded(estimate.value, half)} [{bounds}]{after}"


class StatementDetails(TypedDict, total=False):
    """Optional details of a statement."""

    origin: Origin
    """Each constructor has its own default."""
    why: str
    """The cause, or the reason why our result differs."""


def within(
    name: str,
    says: str,
    estimate: IntervalEstimate,
    at_least: float,
    at_most: float,
    *,
    unit: str = "",
    **details: Unpack[StatementDetails],
) -> Statement:
    """The value lies between two bounds, inclusive."""
    outcome = _inside(estimate, at_least, at_most)
    return Statement(name, says, outcome=outcome, found=estimate_text(estimate, unit), **_OURS | details)


def greater(
    name: str, says: str, ratio: IntervalEstimate, than: float = 1.0, **details: Unpack[StatementDetails]
) -> Statement:
    """The ratio is strictly greater than a number."""
    low, high = _low(ratio), _high(ratio)
    outcome: StatementOutcome = "holds" if low > than else "fails" if high <= than else "undecided"
    return Statement(name, says, outcome=outcome, found=estimate_text(ratio), **_PUBLISHED | details)


def equal(
    name: str,
    says: str,
    ratio: IntervalEstimate,
    *,
    margin: float = 0.02,
    **details: Unpack[StatementDetails],
) -> Statement:
    """The ratio is 1 within a margin: there is no effect."""
    outcome = _inside(ratio, 1 / (1 + margin), 1 + margin)
    return Statement(name, says, outcome=outcome, found=estimate_text(ratio), **_OURS | details)


def ordered(
    name: str,
    says: str,
    estimates: Mapping[str, IntervalEstimate],
    *,
    unit: str = "",
    **details: Unpack[StatementDetails],
) -> Statement:
    """The estimates are in descending order.

    The order of two neighbours is decided if their intervals do not overlap.
    """
    entries = list(estimates.values())
    outcome = all_of([_inside_order(one, other) for one, other in itertools.pairwise(entries)])
    found = ", ".join(f"{label} {estimate_text(one, unit)}" for label, one in estimates.items())
    return Statement(name, says, outcome=outcome, found=found, **_PUBLISHED | details)


def matters(
    name: str, says: str, effects: Mapping[str, IntervalEstimate], **details: Unpack[StatementDetails]
) -> Statement:
    """States that a setting changes the I/O of at least one job; fails if it certainly changes none.

    Args:
        name: Name of the statement.
        says: Text of the statement.
        effects: For each job, its I/O over that without the change.
        details: The cause, and the origin if it is not ours.
    """
    outcomes = [_changed(ratio) for ratio in effects.values()]
    outcome: StatementOutcome = (
        "holds" if "holds" in outcomes else "undecided" if "undecided" in outcomes else "fails"
    )
    found = ", ".join(f"{job} {estimate_text(ratio)}" for job, ratio in effects.items())
    return Statement(name, says, outcome=outcome, found=found, **_OURS | details)


def all_of(outcomes: Sequence[StatementOutcome]) -> StatementOutcome:
    """The outcome of a statement whose parts must all hold."""
    return "fails" if "fails" in outcomes else "undecided" if "undecided" in outcomes else "holds"


def _changed(ratio: IntervalEstimate) -> StatementOutcome:
    low, high = _low(ratio), _high(ratio)
    if low > MATTERS_FROM or high < 1 / MATTERS_FROM:
        return "holds"
    return "fails" if low >= 1 / MATTERS_FROM and high <= MATTERS_FROM else "undecided"


_OURS: StatementDetails = {"origin": "ours"}
_PUBLISHED: StatementDetails = {"origin": "published"}


def _inside_order(greater_one: IntervalEstimate, lesser: IntervalEstimate) -> StatementOutcome:
    if _low(greater_one) > _high(lesser):
        return "holds"
    return "fails" if _high(greater_one) < _low(lesser) else "undecided"


def _inside(estimate: IntervalEstimate, at_least: float, at_most: float) -> StatementOutcome:
    low, high = _low(estimate), _high(estimate)
    if at_least <= low and high <= at_most:
        return "holds"
    return "fails" if high < at_least or low > at_most else "undecided"


def _low(estimate: IntervalEstimate) -> float:
    return estimate.value if estimate.low is None else estimate.low


def _high(estimate: IntervalEstimate) -> float:
    return estimate.value if estimate.high is None else estimate.high
