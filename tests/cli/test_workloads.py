"""`blklab workloads FILE`: what becomes of each option of a job file."""

from __future__ import annotations

from pathlib import Path

import pytest

from blklab.cli import run
from blklab.errors import ExitCode
from blklab.spec.purposes import PURPOSES, purposes_of
from blklab.spec.workloads import load_workload, shipped_commands, shipped_workloads
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


@pytest.mark.parametrize("purpose", PURPOSES)
def test_each_purpose_has_shipped_workloads(purpose: str, capsys: pytest.CaptureFixture[str]) -> None:
    entries = json_of(capsys, "workloads", "--for", purpose)["workloads"]
    assert 3 <= len(entries) <= 8
    assert all(purpose in entry["for"] for entry in entries)
    assert run(["workloads", "--for", purpose]) == 0
    shown = capsys.readouterr().out
    command = next(line for line in shown.splitlines() if line.startswith("next: blklab compare"))
    jobs = [entry["name"] for entry in entries if entry["command"] is None]
    assert command.split()[4:] == [word for name in jobs for word in ("-w", name)]


def test_a_database_has_its_log_and_its_reads(capsys: pytest.CaptureFixture[str]) -> None:
    names = {entry["name"] for entry in json_of(capsys, "workloads", "--for", "database")["workloads"]}
    assert {"write-ahead-log", "random-read-4k-qd32", "pgbench"} <= names


def test_every_purpose_in_a_workload_is_known() -> None:
    for name in (*shipped_workloads(), *shipped_commands()):
        assert set(purposes_of(load_workload(name).text)) <= PURPOSES.keys(), name


def test_an_unknown_purpose_is_answered_with_a_close_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["workloads", "--for", "data-base"]) == ExitCode.USAGE
    assert "did you mean database?" in capsys.readouterr().err
    assert run(["workloads", "--for", "database", "pgbench"]) == ExitCode.USAGE
    assert "leave the names out" in capsys.readouterr().err


def test_the_list_says_how_to_find_those_for_a_machine(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["workloads"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert "blklab workloads --for database|" in last
    assert run(["workloads", "--for", "database"]) == 0
    assert "stand for a machine" not in capsys.readouterr().out
