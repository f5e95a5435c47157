"""`blklab calibrate`: requests that it refuses, and the files that it writes."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from blklab.cli import run
from blklab.cli.reference.schemas import DOCUMENTS, schema_of
from blklab.errors import ExitCode
from blklab.execution.calibration.disk.document import SCHEMA
from blklab.execution.calibration.disk.saved import measurements_path
from blklab.spec.profiles import load_profile


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "a disk or the processor"),
        (["sim:fixed", "--processor"], "a disk or the processor"),
        (["sim:fixed"], "needs a file"),
        (["sim:fixed", "--profile", "a.txt"], "must end in .toml"),
        (["uml:fixed", "--profile", "a.toml"], "only models in the simulator"),
        (["sim:fixed", "--profile", "a.toml", "--budget", "soon"], "not a duration"),
        (["sim:fixed", "--profile", "a.toml", "--file-size", "1m"], "at least 16.0 MiB"),
        (["sim:fixed", "--profile", "a.toml", "--until-steady"], "a model"),
        (["sim:fixed,capacity=8m", "--profile", "a.toml"], "too little to calibrate"),
        (["sim:fixd", "--profile", "a.toml"], "no simulated device"),
        (["sim:fixed", "--profile", "a.toml", "--machine", "nope"], "no machine 'nope'"),
    ],
)
def test_refusals_are_of_the_request(
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["calibrate", *arguments]) in {ExitCode.USAGE, ExitCode.REQUIREMENT}
    assert message in " ".join(capsys.readouterr().err.split())
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_prints_a_load_and_measures_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    profile = tmp_path / "a.toml"
    assert run(["calibrate", "sim:fixed", "--profile", str(profile), "--dry-run"]) == ExitCode.OK
    assert "blklab run sim:fixed randread-4k-qd8" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_model_is_calibrated(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    profile, document = tmp_path / "a.toml", tmp_path / "a.json"
    disk = "sim:virtual,queue_depth=1,parallel=1,read_spread=100,write_spread=100"
    arguments = ["calibrate", disk, "--budget", "1ms", "--profile", str(profile), "--json", str(document)]
    assert run(arguments) == ExitCode.OK
    captured = capsys.readouterr()
    assert f"use it: blklab compare sim:{profile}" in captured.out.replace("\n", "")
    found = json.loads(document.read_text())
    assert found["schema"] == SCHEMA
    jsonschema.validate(found, schema_of(*DOCUMENTS["calibrate-1.json"]))
    assert load_profile(str(profile)).kind == "virtual"
    assert not measurements_path(profile).exists()


@pytest.mark.parametrize("there", ["nothing", "a dangling link", "a file"])
def test_a_profile_without_a_folder_is_refused_before_anything_is_measured(
    there: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    if there == "a dangling link":
        folder.symlink_to(tmp_path / "none-such" / "deep")
    elif there == "a file":
        folder.touch()
    arguments = ["calibrate", "sim:fixed", "--budget", "1ms", "--profile", str(folder / "a.toml")]
    assert run(arguments) == ExitCode.USAGE
    assert f"there is no directory {folder}" in capsys.readouterr().err
    assert not (tmp_path / "none-such").exists()


def test_a_folder_for_cost_tables_that_cannot_be_made(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "blklab").symlink_to(tmp_path / "none-such")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert run(["calibrate", "--processor"]) == ExitCode.REQUIREMENT
    assert f"{tmp_path / 'blklab'}: cannot be created" in capsys.readouterr().err
