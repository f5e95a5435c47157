"""The causes of the differences that a comparison shows."""

from __future__ import annotations

from blklab.report.documents.comparison import CompareDocument
from blklab.report.sentences.causes import cause_sentences
from blklab.report.summary.standing import is_withheld, judged_workloads


def why_lines(document: CompareDocument) -> list[tuple[str, str]]:
    """A label such as ``Why`` or ``Why, for many-readers``, and the sentence that follows it.

    None if the answer is withheld: then something else is the cause.
    """
    if is_withheld(document):
        return []
    several = len(judged_workloads(document)) > 1
    # A guest keeps no account of its requests, so another run was observed.
    where = " (in the simulator)" if document.target_description.backend == "uml" else ""
    return [
        ((f"Why, for {workload}" if several else "Why") + where, sentence)
        for workload, sentence in cause_sentences([part.cause for part in document.causes])
    ]
