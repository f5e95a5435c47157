"""A verdict in a few words, for lists of runs."""

from __future__ import annotations

from blklab.report.documents.comparison import CompareDocument


def short_verdict(document: CompareDocument) -> str:
    """``best: bfq``, ``equal: none, kyber``, ``undecided`` or ``withheld``."""
    verdict = document.verdict
    if verdict.status in ("best", "equal") and verdict.best:
        return f"{verdict.status}: {', '.join(verdict.best)}"
    return verdict.status
