"""The sentence on processors that decide in place of the disk."""

from __future__ import annotations

from collections.abc import Sequence

from blklab.quantities.formatting import join_names, percent_text
from blklab.report.documents.processors import ProcessorPart

FULL = 0.75
"""From this share on, a processor holds the load back noticeably."""


def processor_sentences(parts: Sequence[ProcessorPart]) -> list[str]:
    """A sentence for each workload in which a processor is the bottleneck under some scheduler."""
    sentences = []
    for workload in dict.fromkeys(part.workload for part in parts):
        own = [part for part in parts if part.workload == workload]
        if max(part.busiest_share for part in own) < FULL:
            continue
        busy = join_names([f"{percent_text(part.busiest_share)} with {part.scheduler}" for part in own])
        sentence = f"Under {workload} a processor is the bottleneck (busy {busy})"
        shares = [
            f"{percent_text(part.scheduler_share)} with {part.scheduler}"
            for part in own
            if part.scheduler_share
        ]
        told = f" ({join_names(shares)} of all computing)" if shares else ""
        sentences.append(f"{sentence}, so a scheduler's own computing counts{told}.")
    return sentences
