"""Writes the JSON schemas: ``python -m blklab.cli.reference.schemas docs/reference/schema``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import CoreModeRef, CoreRef, DefsRef, GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from blklab.cli.matrix import MatrixDocument
from blklab.labs.advice.document import AdviseDocument
from blklab.labs.calibration.disk.document import DiskCalibration
from blklab.labs.calibration.disk.submission import Submission
from blklab.labs.iocost.document import IoCostDocument
from blklab.labs.judgement.document import JudgementDocument
from blklab.labs.judgement.host_document import HostJudgementDocument
from blklab.labs.reanalysis.report.document import AnalyseDocument
from blklab.labs.studies.replication.report.document import StudyDocument
from blklab.labs.torture.document import TortureDocument
from blklab.labs.tuning.document import TuneDocument
from blklab.report.documents.between_runs import ChangeDocument
from blklab.report.documents.comparison import CompareDocument, RunDocument
from blklab.report.documents.fleet import FleetDocument
from blklab.report.trace.document import ExplainDocument
from blklab.report.trace.pair import ExplainPairDocument
from blklab.report.waits.document import WhereDocument

DIALECT = "https://json-schema.org/draft/2020-12/schema"

DOCUMENTS: dict[str, tuple[type[BaseModel], str]] = {
    "compare-1.json": (CompareDocument, "what `blklab compare --json` prints"),
    "advise-1.json": (AdviseDocument, "what `blklab advise --json` prints"),
    "analyse-1.json": (AnalyseDocument, "what `blklab analyse --json` prints"),
    "explain-1.json": (ExplainDocument, "what `blklab explain --json` prints"),
    "explain-pair-1.json": (ExplainPairDocument, "what `blklab explain -s A,B --json` prints"),
    "where-1.json": (WhereDocument, "what `blklab where --json` prints"),
    "study-1.json": (StudyDocument, "what `blklab study run --json` prints"),
    "tune-1.json": (TuneDocument, "what `blklab tune --json` prints"),
    "judgement-1.json": (JudgementDocument, "what `blklab kernel judge --json` prints"),
    "host-judgement-1.json": (HostJudgementDocument, "what `blklab kernel judge --module --json` prints"),
    "torture-1.json": (TortureDocument, "what `blklab kernel torture --json` prints"),
    "calibrate-1.json": (DiskCalibration, "what `blklab calibrate disk TARGET --json` prints"),
    "doctor-matrix-1.json": (MatrixDocument, "what `blklab doctor --matrix --json` prints"),
    "drive-1.json": (Submission, "what `blklab calibrate disk TARGET --send-in FILE` writes"),
    "change-1.json": (ChangeDocument, "what `blklab runs compare --json` prints"),
    "fleet-1.json": (FleetDocument, "what `blklab fleet --json` prints"),
    "iocost-1.json": (IoCostDocument, "what `blklab iocost --json` prints"),
    "run-1.json": (RunDocument, "what `blklab run --json` prints"),
}
"""By file name."""


PUBLISHED_NAMES = {
    "ConfirmedCandidatePart": "RecommendationPart",
    "DataDesignPart": "DesignPart",
    "MetricChangePart": "ChangePart",
}
"""Definitions that keep the name under which they were published, by the name of their class now."""


class _PublishedSchema(GenerateJsonSchema):
    """Names definitions as they were published."""

    def get_defs_ref(self, core_mode_ref: CoreModeRef) -> DefsRef:
        core_ref, mode = core_mode_ref
        module, _, name = core_ref.rpartition(".")
        class_name, _, identity = name.partition(":")
        published = PUBLISHED_NAMES.get(class_name, class_name)
        return super().get_defs_ref((CoreRef(f"{module}.{published}:{identity}"), mode))

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        found = super().model_schema(schema)
        published = PUBLISHED_NAMES.get(schema["cls"].__name__)
        return {**found, "title": published} if published else found


def schema_of(model: type[BaseModel], title: str) -> dict[str, Any]:
    """The JSON schema of a document as it is printed: fields under their printed names, all present."""
    schema = model.model_json_schema(mode="serialization", schema_generator=_PublishedSchema)
    return {"$schema": DIALECT, **schema, "title": title}


def schema_text(file_name: str) -> str:
    """Content of one of the schema files."""
    model, title = DOCUMENTS[file_name]
    return json.dumps(schema_of(model, title), indent=2, ensure_ascii=False) + "\n"


def write_schemas(folder: Path) -> list[Path]:
    """Writes all schema files and gives their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / name for name in DOCUMENTS]
    for path in paths:
        path.write_text(schema_text(path.name), encoding="utf-8")
    return paths


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m blklab.cli.reference.schemas FOLDER")
    write_schemas(Path(sys.argv[1]))
