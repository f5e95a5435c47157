"""The verdict and the bounds of regret as values that a program reads and a person understands.

Their fields are those of the JSON document; shown in a notebook or printed, they are the report's sentences.
"""

from __future__ import annotations

from pydantic import PrivateAttr

from blklab.report.documents.comparison import CompareDocument, ExperimentVerdictPart
from blklab.report.summary.regret import loss_sentences
from blklab.report.text.answer import answer_of


class ReadableVerdict(ExperimentVerdictPart):
    """The answer of an experiment."""

    _sentence: str = PrivateAttr("")

    @classmethod
    def of_document(cls, document: CompareDocument) -> ReadableVerdict:
        """The verdict of a comparison."""
        verdict = cls.model_construct(**dict(document.verdict))
        verdict._sentence = answer_of(document).sentence
        return verdict

    def __str__(self) -> str:
        """The report's first sentence."""
        return self._sentence

    def __repr__(self) -> str:
        """The same, named."""
        return f"<Verdict: {self._sentence}>"


class RegretBounds(dict[str, float | None]):
    """By scheduler, the largest fraction that may be lost by taking it; None where that is not known."""

    def __init__(self, document: CompareDocument) -> None:
        """Takes the bounds of a comparison, schedulers in force first.

        Args:
            document: The comparison.
        """
        super().__init__({part.label: part.bound for part in document.verdict.regret})
        self._sentences = loss_sentences(document)

    def __repr__(self) -> str:
        """A line for each scheduler: ``With bfq, no other is better (95 %)``."""
        return "\n".join(self._sentences)

    __str__ = __repr__
