"""The largest loss by each choice while the first place is open."""

from __future__ import annotations

from dataclasses import dataclass

from blklab.analysis.regret import Regret, known_bounds
from blklab.quantities.formatting import scheduler_text
from blklab.report.documents.comparison import CompareDocument, MetricVerdictPart
from blklab.report.sentences.losses import bound_text, loss_text
from blklab.report.summary.standing import differing_controls, is_in_force


@dataclass(frozen=True)
class LossRow:
    """A scheduler in the table of bounds."""

    scheduler: str
    bound: str
    against: str
    """The scheduler that may be so much better, and the workload; empty if nothing is known."""


def loss_rows(document: CompareDocument) -> list[LossRow]:
    """The bound of every scheduler, those in force first; empty once the first place is known."""
    found = _regrets(document)
    if document.verdict.status != "undecided" or differing_controls(document) or not known_bounds(found):
        return []
    several = len(document.workloads) > 1 and document.goal is None
    return [
        LossRow(
            one.label,
            "not known yet" if one.bound is None else bound_text(one.bound),
            "" if one.against is None else f"{one.against}, {one.workload}" if several else one.against,
        )
        for one in found
    ]


def own_loss(document: CompareDocument, verdict: MetricVerdictPart) -> str | None:
    """The largest loss under one of several workloads: by staying, or by the safest choice.

    Returns:
        ``With mq-deadline, no other is more than 6 % better (95 %)``; None if nothing is known.
    """
    every = [Regret(part.label, part.bound, part.against, part.workload) for part in verdict.regret]
    known = known_bounds(every)
    if not known:
        return None
    safest = min(known, key=lambda one: one.bound)
    chosen = next((one for one in known if is_in_force(document, one.label)), safest)
    return _loss_sentence(chosen, document)


def loss_sentences(document: CompareDocument) -> list[str]:
    """The bound of every scheduler in words, those in force first."""
    return [_loss_sentence(one, document) for one in _regrets(document)]


def _loss_sentence(one: Regret, document: CompareDocument) -> str:
    return f"With {scheduler_text(one.label)}, {loss_text(one, document.confidence)}"


def _regrets(document: CompareDocument) -> list[Regret]:
    return [Regret(part.label, part.bound, part.against, part.workload) for part in document.verdict.regret]
