"""A verdict in a few words, for lists of runs."""

from __future__ import annotations

from blklab.report.documents.comparison import CompareDocument
from blklab.report.summary.standing import is_withheld

_VERBS = {"use": "use", "keep": "keep", "choose": "good enough:"}


def short_verdict(document: CompareDocument) -> str:
    """``best: bfq``, ``equal: none, kyber``, ``keep mq-deadline``, ``not known yet`` or ``withheld``."""
    verdict = document.verdict
    if verdict.status in ("best", "equal") and verdict.best:
        return f"{verdict.status}: {', '.join(verdict.best)}"
    advised = verdict.recommendation
    if verdict.status == "undecided" and advised.scheduler is not None and advised.action in _VERBS:
        return f"{_VERBS[advised.action]} {advised.scheduler}"
    if is_withheld(document):
        return "withheld"
    return "not known yet" if advised.action == "unknown" else verdict.status
