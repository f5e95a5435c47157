"""`blklab study`: output and refusals."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from blklab.cli import run
from blklab.errors import ExitCode
from blklab.records.store import Store


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["study", "list"]) == ExitCode.OK
    assert "ionice levels 0 and 7 under cfq" in capsys.readouterr().out
    assert run(["study", "list", "--json"]) == ExitCode.OK
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "blklab.studies/1"
    entry = next(one for one in document["studies"] if one["name"] == "ionice")
    assert entry["places"] == ["sim", "uml", "host"]


def test_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One study: text and page at once, runs stored under the names that the document gives."""
    page, document_file, store = tmp_path / "page.html", tmp_path / "study.json", tmp_path / "runs.sqlite"
    arguments = ["study", "run", "ionice", "--quick", "-v", "--store", str(store)]
    assert run([*arguments, "--html", str(page), "--json", str(document_file)]) == ExitCode.OK
    text, told = capsys.readouterr()
    # The experiments of a study are its own: their names and plans would bury its progress and answer.
    assert not re.search(r"^run \d{8}-|repetitions \(Ctrl-C", told, re.MULTILINE)
    assert text.splitlines()[-2].startswith("ionice: 1 of 1 published conclusion holds; ")
    assert "published: Under cfq, level 0 writes faster than level 7." in text
    assert "ours / published" in text
    assert "<svg" in page.read_text(encoding="utf-8")
    study = json.loads(document_file.read_text())["studies"][0]
    with Store.opened(str(store)) as opened:
        for experiment in study["experiments"]:
            record = opened.load(experiment["run"])
            assert len(record.samples) == experiment["runs"]
            assert record.spec.seed == study["seed"] == 1


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["study", "run", "iotop"], "there is no study 'iotop'"),
        (["study", "run", "ionice", "--target", "."], "--target needs --on host"),
        (["study", "run", "ionice", "--on", "host", "--target", "nowhere"], "nowhere: no such folder"),
        (["study", "run", "ionice", "--kernel", "old"], "--kernel needs --on uml"),
        (["study", "run", "ionice", "--on", "uml", "--kernel", "nowhere"], "there is no kernel nowhere"),
        (["study", "run", "ionice", "--on", "mars"], "--on"),
        (["study", "run"], "NAME"),
    ],
)
def test_refusals(arguments: list[str], names: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == ExitCode.USAGE
    captured = capsys.readouterr()
    assert names in captured.err
    assert captured.out == ""
