"""Changes between two stored runs as a document for machines: what `blklab runs compare --json` prints."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

import blklab
from blklab.analysis.between_runs import RunsComparison
from blklab.records.experiment import ExperimentRecord
from blklab.report.documents.parts import Part, RatioPart
from blklab.report.sentences.changes import change_remark_text

CHANGE_SCHEMA: Literal["blklab.change/1"] = "blklab.change/1"


class ComparedRunPart(Part):
    """One of the two experiments."""

    run: str
    created_at: str
    target: str
    kernel: str
    host: str
    blocks: int


class MetricChangePart(RatioPart):
    """One scheduler under one workload by one metric: `ratio` is the second experiment over the first."""

    workload: str
    scheduler: str
    against: str | None
    """The scheduler that it is measured relative to; null for plain values."""
    decides: bool
    control: bool


class SetUpDifferencePart(Part):
    """A fact about the set-up that differs; empty where an experiment does not have it."""

    name: str
    first: str
    second: str


class ChangeDocument(Part):
    """The document that `blklab runs compare --json -` prints."""

    schema_: Literal["blklab.change/1"] = Field(default=CHANGE_SCHEMA, alias="schema")
    blklab_version: str
    first: ComparedRunPart
    second: ComparedRunPart
    confidence: float
    margin: float
    paired: bool
    """Whether blocks correspond: models with the same seed."""
    status: Literal["slower", "faster", "mixed", "same", "undecided"]
    changes: list[MetricChangePart]
    shifts: list[MetricChangePart]
    """Changes relative to another scheduler, which a drift of the whole disk does not touch."""
    set_up: list[SetUpDifferencePart]
    remarks: list[str]


def change_document(found: RunsComparison) -> ChangeDocument:
    """Makes the document of two compared experiments."""
    return ChangeDocument(
        blklab_version=blklab.__version__,
        first=_run(found.first),
        second=_run(found.second),
        confidence=found.confidence,
        margin=found.margin,
        paired=found.paired,
        status=found.status,
        changes=[MetricChangePart.of(one) for one in found.changes],
        shifts=[MetricChangePart.of(one) for one in found.shifts],
        set_up=[SetUpDifferencePart.of(one) for one in found.set_up],
        remarks=[change_remark_text(remark) for remark in found.remarks],
    )


def _run(record: ExperimentRecord) -> ComparedRunPart:
    return ComparedRunPart(
        run=record.run_id,
        created_at=record.created_at,
        target=record.spec.target,
        kernel=record.machine.kernel,
        host=record.machine.host,
        blocks=record.complete_blocks,
    )
