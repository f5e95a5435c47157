"""A study that was run again, for machines: what `blklab study run --json` prints.

docs/schema/study-1.json is generated from the models (`make golden`).
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

import blklab
from blklab.report.repeated.finding import StudyFinding
from blklab.studies.result import Figure, Quantity

STUDY_SCHEMA: Literal["blklab.study/1"] = "blklab.study/1"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class QuantityPart(_Part):
    """A figure with the bounds of its 95 % interval."""

    value: float
    low: float | None
    high: float | None


class FigurePart(_Part):
    """A published figure and ours."""

    table: str
    name: str
    unit: str
    published: QuantityPart | None
    ours: QuantityPart | None
    ratio: float | None
    not_asked: str


class StatementPart(_Part):
    """A sentence, and whether results bear it out."""

    name: str
    says: str
    origin: Literal["published", "ours"]
    outcome: Literal["holds", "fails", "undecided"]
    found: str
    why: str


class ExperimentPart(_Part):
    """One experiment of the study."""

    name: str
    title: str
    run: str
    """Name of the stored run."""
    target: str
    order: Literal["randomised", "by-scheduler"]
    runs: int
    failed_runs: int


class ClaimPart(_Part):
    """A printed conclusion, and whether the figures printed beside it support it."""

    says: str
    status: str


class StudyPart(_Part):
    """One study."""

    name: str
    title: str
    source: str
    place: Literal["sim", "uml", "host"]
    quick: bool
    seed: int
    experiments: list[ExperimentPart]
    figures: list[FigurePart]
    statements: list[StatementPart]
    claims: list[ClaimPart]
    remarks: list[str]


class StudyDocument(_Part):
    """The whole document."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    schema_name: Literal["blklab.study/1"] = Field(default=STUDY_SCHEMA, alias="schema")
    blklab_version: str
    studies: list[StudyPart]


def study_document(findings: list[StudyFinding]) -> StudyDocument:
    """The document of studies that were carried out."""
    return StudyDocument(
        blklab_version=blklab.__version__, studies=[_study_part(finding) for finding in findings]
    )


def _study_part(finding: StudyFinding) -> StudyPart:
    result = finding.result
    return StudyPart(
        name=finding.name,
        title=finding.title,
        source=finding.published.claims.source,
        place=finding.asked.place,
        quick=finding.asked.quick,
        seed=finding.asked.seed,
        experiments=[
            ExperimentPart(
                name=one.name,
                title=one.title,
                run=record.run_id,
                target=record.spec.target,
                order=record.spec.order,
                runs=len(record.samples),
                failed_runs=sum(sample.status == "failed" for sample in record.samples),
            )
            for one in finding.experiments
            for record in [finding.records[one.name]]
        ],
        figures=[_figure_part(figure) for figure in result.figures],
        statements=[
            StatementPart(
                name=one.name,
                says=one.says,
                origin=one.origin,
                outcome=one.outcome,
                found=one.found,
                why=one.why,
            )
            for one in result.statements
        ],
        claims=[
            ClaimPart(says=reading.claim.says, status=reading.status)
            for reading in finding.published.readings.claims
        ],
        remarks=result.remarks,
    )


def _figure_part(figure: Figure) -> FigurePart:
    return FigurePart(
        table=figure.table,
        name=figure.name,
        unit=figure.unit,
        published=_quantity_part(figure.published),
        ours=_quantity_part(figure.ours),
        ratio=figure.ratio,
        not_asked=figure.not_asked,
    )


def _quantity_part(quantity: Quantity | None) -> QuantityPart | None:
    if quantity is None:
        return None
    return QuantityPart(value=quantity.value, low=quantity.low, high=quantity.high)
