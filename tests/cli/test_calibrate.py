"""`blklab calibrate`: requests that it refuses, and the files that it writes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest

from blklab.cli import run
from blklab.cli.reference.schemas import DOCUMENTS, schema_of
from blklab.errors import ExitCode
from blklab.labs.calibration.disk.document import SCHEMA
from blklab.labs.calibration.disk.saved import measurements_path
from blklab.labs.calibration.disk.submission import read_submission
from blklab.spec.profiles import load_profile


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["disk", "sim:fixed"], "needs a file"),
        (["processor", "sim:fixed"], "unexpected extra argument"),
        (["sim:fixed"], "no command 'sim:fixed'"),
        (["disk", "sim:fixed", "-o", "a.toml", "--budget", "5"], "5s or 5m?"),
        (["disk", "sim:fixed", "-o", "a.txt"], "must end in .toml"),
        (["disk", "uml:fixed", "-o", "a.toml"], "only models in the simulator"),
        (["disk", "sim:fixed", "-o", "a.toml", "--budget", "soon"], "not a duration"),
        (["disk", "sim:fixed", "-o", "a.toml", "--file-size", "1m"], "at least 16.0 MiB"),
        (["disk", "sim:fixed", "-o", "a.toml", "--until-steady"], "a model"),
        (["disk", "sim:fixed,capacity=8m", "-o", "a.toml"], "too little to calibrate"),
        (["disk", "sim:fixd", "-o", "a.toml"], "no simulated device"),
        (["disk", "sim:fixed", "-o", "a.toml", "--machine", "nope"], "no machine 'nope'"),
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
    assert run(["calibrate", "disk", "sim:fixed", "-o", str(profile), "--dry-run"]) == ExitCode.OK
    assert "blklab run sim:fixed randread-4k-qd8" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("spelling", [["--profile", "a.toml"], ["--profile=a.toml"]])
def test_the_spelling_of_one_command_for_both_still_works(
    spelling: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["calibrate", "sim:fixed", *spelling, "--dry-run"]) == ExitCode.OK
    captured = capsys.readouterr()
    assert "blklab run sim:fixed randread-4k-qd8" in captured.out
    assert "`blklab calibrate disk TARGET -o FILE`" in captured.err


@pytest.mark.slow
def test_a_model_is_calibrated(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    profile, document = tmp_path / "a.toml", tmp_path / "a.json"
    disk = "sim:virtual,queue_depth=1,parallel=1,read_spread=100,write_spread=100"
    arguments = ["calibrate", "disk", disk, "--budget", "1ms", "-o", str(profile), "--json", str(document)]
    sent = tmp_path / "sent.json"
    assert run([*arguments, "--send-in", str(sent)]) == ExitCode.OK
    captured = capsys.readouterr()
    assert f"use it: blklab compare sim:{profile}" in captured.out.replace("\n", "")
    assert re.search(r"^ *queue_depth +1 command ", captured.out, re.MULTILINE)
    assert re.search(r"^ *read_rate +\d+ B/s ", captured.out, re.MULTILINE)
    found = json.loads(document.read_text())
    assert found["schema"] == SCHEMA
    jsonschema.validate(found, schema_of(*DOCUMENTS["calibrate-1.json"]))
    assert load_profile(str(profile)).kind == "virtual"
    assert not measurements_path(profile).exists()
    submission = read_submission(sent)
    assert len(submission.measurements) == found["runs"]
    assert submission.way == "model"


@pytest.mark.parametrize("there", ["nothing", "a dangling link", "a file"])
def test_a_profile_without_a_folder_is_refused_before_anything_is_measured(
    there: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    if there == "a dangling link":
        folder.symlink_to(tmp_path / "none-such" / "deep")
    elif there == "a file":
        folder.touch()
    arguments = ["calibrate", "disk", "sim:fixed", "--budget", "1ms", "-o", str(folder / "a.toml")]
    assert run(arguments) == ExitCode.USAGE
    assert f"there is no directory {folder}" in capsys.readouterr().err
    assert not (tmp_path / "none-such").exists()


def test_a_folder_for_cost_tables_that_cannot_be_made(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "blklab").symlink_to(tmp_path / "none-such")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    for spelling in ("processor", "--processor"):
        assert run(["calibrate", spelling]) == ExitCode.REQUIREMENT
        assert f"{tmp_path / 'blklab'}: cannot be created" in capsys.readouterr().err
