"""The one rule by which an experiment recommends a scheduler.

A change is recommended only if it is shown to be worth it: the scheduler is shown to be better than the one
in force, or it is known to be within `limit` of the best while the one in force is beaten. Otherwise there is
no reason to change, and the bound of regret says what is lost at most by staying. Everything that tells a
person or a program what to do rests on this: the reports, the JSON document, and what `blklab apply` accepts.

On a model nothing is in force that a person could keep, and of a comparison between kernels it is the patch
that is asked about; there the same figures give a finding instead of advice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from blklab.analysis.comparison import PairwiseComparison
from blklab.analysis.questions import Question
from blklab.analysis.regret import Regret, good_enough, known_bounds
from blklab.analysis.tie_breaking import TieBreak

DEFAULT_GOOD_ENOUGH = 0.05
"""A scheduler that is known to be at most this much worse than the best is as good as the best."""

Action = Literal["use", "keep", "choose", "unknown", "depends", "withheld"]
"""``use``: another scheduler than the one in force. ``keep``: the one in force. ``choose``: a finding where
none of those compared is in force (a model, kernels, or a disk whose own scheduler was left out).
``depends``: each workload has another winner. ``withheld``: a control differs."""

Reason = Literal[
    "best",
    "better",
    "equal",
    "good_enough",
    "not_shown",
    "no_figures",
    "too_few",
    "open",
    "depends",
    "control",
]
"""``best``: it is best. ``better``: it is better than the one in force, but perhaps not the best. ``equal``:
it shares the first place. ``good_enough``: it is within the limit of the best. ``not_shown``: no other is
shown to be better. ``no_figures``, ``too_few``, ``open``: nothing can be said yet, for want of figures of
some scheduler, of samples, or of a difference."""

Subject = Literal["disk", "model", "kernels"]


@dataclass(frozen=True)
class Recommendation:
    """The scheduler to use or to keep, and the reason."""

    action: Action
    reason: Reason
    subject: Subject
    scheduler: str | None
    """The one to use, to keep, or found best; None if none is."""
    in_force: str | None
    """The one that leaves the target as it was, if it was compared."""
    loss: float | None
    """The most that is lost by following this, as a fraction of what the best gives; None if not known."""
    against: str | None
    """The scheduler that may be so much better."""
    limit: float
    """Losses up to this fraction are good enough."""

    @property
    def is_shown(self) -> bool:
        """Whether the scheduler is one to set, now and at every boot."""
        return self.scheduler is not None and self.reason != "not_shown"


@dataclass(frozen=True)
class Findings:
    """All that the rule rests on."""

    status: Literal["best", "equal", "undecided", "withheld"]
    best: Sequence[str]
    candidates: Sequence[str]
    """Those not ruled out, the leader first."""
    questions: Sequence[Question]
    """Those that the answer rests on."""
    pairs: Sequence[Sequence[PairwiseComparison]]
    """Of each question."""
    regrets: Sequence[Regret]
    """Those in force first, then by their bounds."""
    labels: Sequence[str]
    in_force: Sequence[str]
    tie: TieBreak | None
    controls_differ: bool
    margin: float
    fewest_samples: int
    """Samples without which nothing can be decided."""


def recommend(found: Findings, subject: Subject, limit: float) -> Recommendation:
    """Applies the rule.

    Args:
        found: The analysed experiment.
        subject: The kind of thing that was compared.
        limit: Losses up to this fraction are good enough.
    """
    own = found.in_force[0] if found.in_force and subject == "disk" else None

    def says(
        action: Action, reason: Reason, scheduler: str | None, loss: float | None = None
    ) -> Recommendation:
        bound = next((one for one in found.regrets if one.label == scheduler), None)
        return Recommendation(
            action=action,
            reason=reason,
            subject=subject,
            scheduler=scheduler,
            in_force=own,
            loss=loss if loss is not None or bound is None else bound.bound,
            against=None if bound is None else bound.against,
            limit=limit,
        )

    if found.controls_differ:
        return says("withheld", "control", None)
    if found.status in ("best", "equal"):
        return _settled(found, own, says)
    if (why := _why_unknown(found)) == "too_few":
        # In virtual time two repetitions may agree to the last digit, so that their bounds look certain.
        return says("unknown", why, None)
    return _while_open(found, own, limit, says)


class _Says(Protocol):
    def __call__(
        self, action: Action, reason: Reason, scheduler: str | None, loss: float | None = None
    ) -> Recommendation: ...


def _while_open(found: Findings, own: str | None, limit: float, says: _Says) -> Recommendation:
    """The first place is not known: a choice may be good enough all the same."""
    bounds = {one.label: one.bound for one in known_bounds(found.regrets)}
    near = good_enough(found.regrets, own, found.candidates, limit)
    if near is not None and near == own:
        return says("keep", "good_enough", own)
    if own is not None and (better := _shown_better(found, own, bounds)) is not None:
        return says("use", "better", better)
    if near is not None:
        return says("choose" if own is None else "use", "good_enough", near)
    if own in bounds and own in found.candidates:
        return says("keep", "not_shown", own)
    if not found.candidates:
        return says("depends", "depends", None)
    return says("unknown", _why_unknown(found), None)


def _settled(found: Findings, own: str | None, says: _Says) -> Recommendation:
    """The first place is known, and so is whether the one in force has a share in it."""
    reason: Reason = "best" if found.status == "best" else "equal"
    loss = 0.0 if found.status == "best" else found.margin
    if own in found.best:
        return says("keep", reason, own, loss)
    chosen = found.best[0] if found.status == "best" else None
    if chosen is None and found.tie is not None:
        chosen = found.tie.label
    if own is None:
        return says("choose", reason, chosen, loss)
    return says("use", reason, chosen or found.best[0], loss)


def _shown_better(found: Findings, own: str, bounds: Mapping[str, float]) -> str | None:
    """The safest scheduler that is shown to be better than the one in force, and nowhere not as good."""
    better = [label for label in found.labels if label != own and _beats(label, own, found.pairs)]
    order = [*(label for label in found.candidates if label in better), *better]
    return min(
        order, key=lambda label: (label not in found.candidates, bounds.get(label, math.inf)), default=None
    )


def _beats(label: str, own: str, pairs: Sequence[Sequence[PairwiseComparison]]) -> bool:
    """Whether one is better than another by some question, and as good or better by all others."""
    outcomes = {
        next(
            (pair.seen_from(label).outcome for pair in of_one if {pair.first, pair.second} == {label, own}),
            None,
        )
        for of_one in pairs
    }
    return "better" in outcomes and outcomes <= {"better", "equal"}


def _why_unknown(found: Findings) -> Reason:
    if any(label not in question.values for question in found.questions for label in found.labels):
        return "no_figures"
    fewest = min((pair.n for of_one in found.pairs for pair in of_one), default=0)
    return "too_few" if fewest < found.fewest_samples else "open"
