"""`blklab workloads FILE`: what becomes of each option of a job file."""

from __future__ import annotations

from pathlib import Path

import pytest

from blklab.cli import run
from blklab.errors import ExitCode
from command_runs import json_of

MODELLED = (
    "[global]\ndirectory=/elsewhere\nbuffer_pattern=0xff\n[a]\nrw=randtrim\n[b]\nrw=randread\nmem=malloc\n"
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.fio"
    path.write_text(MODELLED)
    return path


def test_each_option_has_its_ground_and_line(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = json_of(capsys, "workloads", str(file))
    (entry,) = document["workloads"]
    assert (document["schema"], entry["grounds"]) == ("blklab.workloads/1", ["host", "sim", "uml"])
    uses = {(use["job"], use["option"]): use for use in entry["options"]}
    assert uses["a", "directory"]["meaning"] == "/elsewhere is mapped into scratch space"
    assert (uses["b", "directory"]["ground"], uses["b", "directory"]["line"]) == ("modelled", 2)
    assert uses["a", "buffer_pattern"]["ground"] == "neutral"
    assert uses["a", "readwrite"]["value"] == "randtrim"
    assert [note["option"] for note in entry["notes"]] == ["directory"]


def test_a_refusal_of_models_is_given_with_its_reason(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(MODELLED + "[c]\nrw=randtrimwrite\n")
    (entry,) = json_of(capsys, "workloads", str(file))["workloads"]
    assert entry["grounds"] == ["host"]
    assert [(note["job"], note["option"], note["line"]) for note in entry["host_only"]] == [
        ("c", "readwrite", 10)
    ]
    assert run(["workloads", str(file)]) == ExitCode.OK
    text = " ".join(capsys.readouterr().out.split())
    assert "runs on hosts; models refuse readwrite" in text
    assert "models do not alternate trims and writes" in text


def test_the_text_shows_an_option_of_all_sections_once(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    assert run(["workloads", str(file)]) == ExitCode.OK
    lines = capsys.readouterr().out.splitlines()
    (shared,) = [line for line in lines if "directory=/elsewhere" in line]
    assert shared.split()[:3] == ["2", "2", "sections"]
    assert lines[-1] == "runs on hosts, in the simulator and in guests"
