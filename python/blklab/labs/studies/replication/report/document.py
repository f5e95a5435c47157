"""The JSON document that `blklab study run --json` prints.

`make golden` generates docs/reference/schema/study-1.json from these models.
"""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

import blklab
from blklab.labs.studies.replication.report.finding import StudyFinding
from blklab.report.documents.parts import Part

STUDY_SCHEMA: Literal["blklab.study/1"] = "blklab.study/1"


class EstimatePart(Part):
    """A value with the bounds of its 95 % interval."""

    value: float
    low: float | None
    high: float | None


class ComparedValuePart(Part):
    """A published value and ours."""

    table: str
    name: str
    unit: str
    published: EstimatePart | None
    ours: EstimatePart | None
    ratio: float | None
    not_asked: str
    beside: Literal["published", "intended"]
    """The kind of value under `published`: a printed value, or the value that a setting is meant to give."""


class StatementPart(Part):
    """A sentence, and whether the results confirm it."""

    name: str
    says: str
    origin: Literal["published", "ours"]
    outcome: Literal["holds", "fails", "undecided"]
    found: str
    why: str


class ExperimentPart(Part):
    """One experiment of the study."""

    name: str
    title: str
    run: str
    """Name of the stored run."""
    target: str
    order: Literal["randomised", "by-scheduler"]
    runs: int
    failed_runs: int


class ClaimPart(Part):
    """A printed conclusion, and whether the values printed beside it support it."""

    says: str
    status: str


class StudyPart(Part):
    """One study."""

    name: str
    title: str
    source: str
    place: Literal["sim", "uml", "host"]
    kernel: str | None
    """The guest kernel that the user named; null: the stock one, or no guest."""
    quick: bool
    seed: int
    experiments: list[ExperimentPart]
    figures: list[ComparedValuePart]
    statements: list[StatementPart]
    claims: list[ClaimPart]
    remarks: list[str]


class StudyDocument(Part):
    """The whole document."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    schema_name: Literal["blklab.study/1"] = Field(default=STUDY_SCHEMA, alias="schema")
    blklab_version: str
    studies: list[StudyPart]


def study_document(findings: list[StudyFinding]) -> StudyDocument:
    """Builds the document from the findings of studies."""
    return StudyDocument(
        blklab_version=blklab.__version__, studies=[_study_part(finding) for finding in findings]
    )


def _study_part(finding: StudyFinding) -> StudyPart:
    result = finding.result
    return StudyPart(
        name=finding.name,
        title=finding.title,
        source=finding.folder.claims.source,
        place=finding.options.backend,
        kernel=None if finding.options.kernel is None else finding.options.kernel.name,
        quick=finding.options.quick,
        seed=finding.options.seed,
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
        figures=[ComparedValuePart.of(value) for value in result.values],
        statements=[StatementPart.of(one) for one in result.statements],
        claims=[
            ClaimPart(says=reading.claim.says, status=reading.status)
            for reading in finding.folder.readings.claims
        ],
        remarks=result.remarks,
    )
