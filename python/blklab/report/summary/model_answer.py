"""The same question answered on a modelled disk, to be shown beside the verdict of a real one."""

from __future__ import annotations

from dataclasses import dataclass

from blklab.analysis.verdict import analyse
from blklab.records.experiment import ExperimentRecord
from blklab.report.documents.comparison import CompareDocument, compare_document
from blklab.report.summary.reproduce import repeat_command
from blklab.report.summary.standing import deciding_pairs


@dataclass(frozen=True)
class ModelAnswer:
    """A modelled disk's verdict. Reports label it as the model's; no document or store holds it."""

    document: CompareDocument
    command: str
    """The command that asks the model again."""
    undecided_nearest: str | None = None
    """The nearest model, if that one is undecided and this is the answer of another."""

    @property
    def device(self) -> str:
        """``sim:ssd-sata, consumer SATA TLC SSD, 1 TB``."""
        _, _, summary = self.document.target_description.summary.partition(": ")
        return ", ".join(filter(None, (self.document.target, summary)))

    @property
    def is_settled(self) -> bool:
        """Whether the model has a verdict where the disk may have none."""
        return self.document.verdict.status in ("best", "equal")


def asks_model(document: CompareDocument) -> bool:
    """Whether a model's answer helps: only where the disk itself has neither an answer nor a lead."""
    return document.verdict.recommendation.action == "unknown"


def contradicts(document: CompareDocument, model: ModelAnswer) -> bool:
    """Whether the disk has settled a pair against the model: one that the model finds best loses there."""
    lost = set()
    for pair in deciding_pairs(document):
        if pair.outcome in ("better", "worse"):
            lost.add(pair.second if pair.outcome == "better" else pair.first)
    return bool(lost & set(model.document.verdict.best))


def model_answer(record: ExperimentRecord) -> ModelAnswer:
    """The answer of a record that was made on a modelled disk."""
    # A limit in time is this machine's; the number of blocks repeats anywhere.
    spec = record.spec.model_copy(update={"budget_ns": None})
    return ModelAnswer(compare_document(record, analyse(record)), repeat_command(spec))
