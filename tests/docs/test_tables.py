"""The tables of the hand-written pages list what the program has."""

from __future__ import annotations

import csv
import os
import re
from pathlib import Path

from blklab.analysis.metrics import METRICS
from blklab.labs.reanalysis.readers import READERS
from blklab.spec.goals import NAMED_GOALS

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"


def test_every_metric_is_described() -> None:
    page = REFERENCE / "metrics.md"
    text = page.read_text("utf-8")
    rows = "".join(
        f"| `{one.name}` | {one.unit or 'none'} | {one.better} | {one.description} |\n"
        for one in METRICS.values()
    )
    table = re.search(
        r"(?<=\| Name \| Unit \| Better \| Meaning \|\n\|---\|---\|---\|---\|\n)(\|.*\n)+", text
    )
    assert table is not None
    if os.environ.get("BLKLAB_REFRESH_GOLDEN"):
        page.write_text(text.replace(table.group(0), rows), "utf-8")
    else:
        assert table.group(0) == rows, "refresh with `make golden`"


def test_every_goal_is_described() -> None:
    text = (REFERENCE / "metrics.md").read_text("utf-8")
    goals = text.partition("## Goals")[2].partition("##")[0]
    assert re.findall(r"^\| `(\w+)` \|", goals, re.MULTILINE) == list(NAMED_GOALS)


def test_every_reader_is_described() -> None:
    text = (REFERENCE / "analyse.md").read_text("utf-8")
    names = text.partition("## Readers")[2].partition(": [what")[0]
    assert re.findall(r"`([\w-]+)`", names) == list(READERS)
    with (REFERENCE / "tables" / "analyse-readers.csv").open(encoding="utf-8", newline="") as file:
        assert [row["Reader"] for row in csv.DictReader(file)] == list(READERS)
