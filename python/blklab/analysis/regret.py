"""The bound of regret: the most that is lost by taking a scheduler that may not be the best.

The bound of a candidate is the largest upper end, over all others, of how much better the other one is. It
holds although it is the largest of several: only the scheduler that is truly best can prove it wrong, so only
that one interval has to hold. The candidate is chosen after looking at the bounds of all, and all but the
best could be wrong, so the level is divided by their number; several workloads divide it again. With the
interval of a design that may be looked at at any time, so may the bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from blklab.analysis.designs import Design
from blklab.analysis.questions import Question

_LARGEST = 1e6
"""Factors beyond are as good as unknown."""
WORTH_SAYING = 1.0
"""Bounds above this (another one may be twice as good) are no help to anybody."""


@dataclass(frozen=True)
class Regret:
    """At most this much is lost by taking a scheduler."""

    label: str
    bound: float | None
    """The best one is better by at most this fraction, such as 0.06; None while nothing can be said."""
    against: str | None
    """The scheduler that may be so much better; None while nothing can be said."""
    workload: str | None
    """The workload under which it may be; None while nothing can be said."""


@dataclass(frozen=True)
class KnownRegret(Regret):
    """The same where the bound is known."""

    bound: float


def regrets(
    questions: Sequence[Question],
    design: Design,
    labels: Sequence[str],
    in_force: Sequence[str],
    *,
    family_size: int | None = None,
) -> list[Regret]:
    """The bound of each scheduler, over all questions that the verdict rests on.

    Args:
        questions: One for each judged workload, or the goal's.
        design: The experiment's.
        labels: All schedulers.
        in_force: Those that leave the target as it was.
        family_size: Questions whose bounds are to hold together; by default these.

    Returns:
        Those in force first, then by their bounds.
    """
    level = design.level / max(1, len(labels) - 1) / max(1, family_size or len(questions))
    found = [_regret(label, questions, design, labels, level) for label in labels]
    return sorted(
        found,
        key=lambda one: (one.label not in in_force, math.inf if one.bound is None else one.bound),
    )


def good_enough(
    found: Sequence[Regret], own: str | None, candidates: Sequence[str], limit: float
) -> str | None:
    """A scheduler that is known to be close enough to the best, so that no more needs to be known.

    That another one is close is no reason to leave the one in force, as long as that one may be the best.

    Args:
        found: `regrets`.
        own: The scheduler in force, if it was compared.
        candidates: Those not ruled out.
        limit: A bound that is small enough.
    """
    bounds = {one.label: one.bound for one in known_bounds(found)}
    near = [label for label, bound in bounds.items() if bound <= limit]
    if own in near:
        return own
    if own in candidates and own in bounds:
        return None
    return min(near, key=bounds.__getitem__, default=None)


def known_bounds(found: Sequence[Regret]) -> list[KnownRegret]:
    """The bounds that are of use to anybody, in their order."""
    return [
        KnownRegret(one.label, one.bound, one.against, one.workload)
        for one in found
        if one.bound is not None and one.bound <= WORTH_SAYING
    ]


def _regret(
    label: str, questions: Sequence[Question], design: Design, labels: Sequence[str], level: float
) -> Regret:
    worst = Regret(label, 0.0, None, None)
    for question in questions:
        for other in labels:
            if other == label:
                continue
            gain = _largest_gain(label, other, question, design, level)
            if gain is None:
                return Regret(label, None, None, None)
            if worst.against is None or gain > (worst.bound or 0.0):
                worst = Regret(label, gain, other, question.workload)
    return worst


def _largest_gain(label: str, other: str, question: Question, design: Design, level: float) -> float | None:
    """How much better than `label` the other one may be, as a fraction; None if it is not known."""
    pair = (other, label) if question.metric.better == "higher" else (label, other)
    first, second = (question.values.get(name, {}) for name in pair)
    difference = design.of(question.workload).difference(first, second)
    interval = None if difference is None else difference.log_interval(1 - 2 * level)
    if interval is None or not math.isfinite(interval[1]) or interval[1] > math.log(_LARGEST):
        return None
    return max(0.0, math.expm1(interval[1]))
