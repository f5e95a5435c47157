"""The documented schemas are those of the models, and real documents satisfy them."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from report_cases import CASES, analysed

from blklab.cli.reference.schemas import DOCUMENTS, schema_text
from blklab.report.documents.comparison import compare_document, run_document

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "reference" / "schema"


def _validator(name: str) -> Draft202012Validator:
    schema = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_files_are_those_of_the_models(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == schema_text(name), (
        "refresh with `python -m blklab.cli.reference.schemas docs/reference/schema`"
    )


def test_the_command_writes_them(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "blklab.cli.reference.schemas", str(tmp_path / "new")], check=True)
    written = sorted(path.name for path in (tmp_path / "new").iterdir())
    assert written == sorted(DOCUMENTS) == sorted(path.name for path in FOLDER.iterdir())


@pytest.mark.parametrize("case", CASES)
def test_comparisons_satisfy_the_schema(case: str) -> None:
    document = compare_document(*analysed(case)).model_dump(mode="json", by_alias=True)
    validator = _validator("compare-1.json")
    validator.validate(json.loads(json.dumps(document, allow_nan=False)))
    del document["verdict"]["status"]
    assert not validator.is_valid(document)


@pytest.mark.parametrize("case", ["decided", "undecided", "twelve"])
def test_runs_satisfy_the_schema(case: str) -> None:
    validator = _validator("run-1.json")
    for sample in analysed(case)[0].samples[:6]:
        document = run_document("/srv", sample, scheduler="bfq", tunables={"slice_idle": "0"}, queue={})
        plain = document.model_dump(mode="json", by_alias=True)
        validator.validate(json.loads(json.dumps(plain, allow_nan=False)))
        plain["jobs"][0].pop("iops")
        assert not validator.is_valid(plain)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_field_is_documented(name: str) -> None:
    reference = ROOT / "docs" / "reference"
    page = (reference / "json.md").read_text(encoding="utf-8")
    with (reference / "tables" / "json-fields.csv").open(encoding="utf-8", newline="") as file:
        fields = {name for row in csv.DictReader(file) for name in row["field"].split(", ")}
    schema = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    for field in schema["properties"]:
        explained = field in fields or f"`{field}`" in page
        assert explained, f"neither docs/reference/json.md nor its table explains {field}"
