"""The largest loss by a choice while the first place is open: reports lead with it then."""

from __future__ import annotations

from dataclasses import dataclass

from blklab.analysis.regret import WORTH_SAYING, Regret, bound_text, loss_text
from blklab.report.documents.comparison import CompareDocument, MetricVerdictPart
from blklab.report.summary.standing import differing_controls, has_open_question, is_in_force


@dataclass(frozen=True)
class Lead:
    """The advice that an open verdict permits."""

    action: str
    """``Stay with mq-deadline``, or ``Take kyber``."""
    loss: str
    """``no other is more than 6 % better (95 %)``."""
    safest: str | None
    """A change with a smaller bound, such as ``With kyber it is 2 % at most``; None if there is none."""


@dataclass(frozen=True)
class LossRow:
    """A scheduler in the table of bounds."""

    scheduler: str
    bound: str
    against: str
    """The scheduler that may be so much better, and the workload; empty if nothing is known."""


def lead_of(document: CompareDocument) -> Lead | None:
    """The advice of an open verdict; None if the verdict is not open, or nothing is known yet."""
    verdict = document.verdict
    if verdict.status != "undecided" or not has_open_question(document) or differing_controls(document):
        return None
    known = [one for one in _regrets(document) if one.bound is not None and one.bound <= WORTH_SAYING]
    if not known:
        return None
    safest = min(known, key=lambda one: one.bound or 0.0)
    in_force = next((one for one in known if is_in_force(document, one.label)), None)
    chosen = next((one for one in known if one.label == verdict.choice), in_force or safest)
    loss = loss_text(chosen, document.confidence)
    verb = "Stay with" if is_in_force(document, chosen.label) else "Take"
    smaller = bound_text(safest) if bound_text(safest) != bound_text(chosen) else None
    return Lead(
        action=f"{verb} {chosen.label}",
        loss=loss if verdict.choice is None else f"{loss}, which is good enough",
        safest=None
        if smaller is None or verdict.choice is not None
        else f"With {safest.label} it is {smaller} at most",
    )


def loss_rows(document: CompareDocument) -> list[LossRow]:
    """The bound of every scheduler, those in force first; empty unless reports lead with one of them."""
    if lead_of(document) is None:
        return []
    several = len(document.workloads) > 1 and document.goal is None
    return [
        LossRow(
            one.label,
            "not known yet" if one.bound is None else bound_text(one),
            "" if one.against is None else f"{one.against}, {one.workload}" if several else one.against,
        )
        for one in _regrets(document)
    ]


def own_loss(document: CompareDocument, verdict: MetricVerdictPart) -> str | None:
    """The largest loss under one of several workloads: by staying, or by the safest choice.

    Returns:
        ``With mq-deadline, no other is more than 6 % better (95 %)``; None if nothing is known.
    """
    every = [Regret(part.label, part.bound, part.against, part.workload) for part in verdict.regret]
    known = [one for one in every if one.bound is not None and one.bound <= WORTH_SAYING]
    if not known:
        return None
    safest = min(known, key=lambda one: one.bound or 0.0)
    chosen = next((one for one in known if is_in_force(document, one.label)), safest)
    return f"With {chosen.label}, {loss_text(chosen, document.confidence)}"


def _regrets(document: CompareDocument) -> list[Regret]:
    return [Regret(part.label, part.bound, part.against, part.workload) for part in document.verdict.regret]
