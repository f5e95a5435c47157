"""The answer of a modelled disk beside that of a real one, in words that nobody takes for the disk's."""

from __future__ import annotations

from blklab.report.summary.model_answer import ModelAnswer
from blklab.report.text.answer import answer_of

TITLE = "A model's answer, not this disk's"


def model_sentence(model: ModelAnswer) -> str:
    """The model, and its answer to the same question."""
    where = f"On a modelled disk ({model.device})"
    if model.undecided_nearest is not None:
        where = f"{model.undecided_nearest} has no answer either; on another modelled disk ({model.device})"
    return f"{where}: {answer_of(model.document).sentence}"
