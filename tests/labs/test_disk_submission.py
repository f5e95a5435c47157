"""Files about a drive to send in: what they contain, what they leave out, how they are checked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import blklab
from blklab.cli import run
from blklab.cli.reference.schemas import DOCUMENTS, schema_of
from blklab.errors import ExitCode, FormatError
from blklab.labs.calibration.disk.submission import SCHEMA, read_submission, submission_text
from blklab.linux.disks.disk import firmware_of
from blklab.spec.profiles import load_profile
from drive_submissions import LOAD, SERIAL, submission


def test_a_file_has_the_drive_and_its_measurements_and_nothing_of_the_machine() -> None:
    text = submission_text(submission())
    found = json.loads(text)
    jsonschema.validate(found, schema_of(*DOCUMENTS["drive-1.json"]))
    assert found["schema"] == SCHEMA
    assert found["blklab_version"] == blklab.__version__
    assert found["drive"]["firmware"] == "5B2QGXA7"
    assert found["drive"]["model"].startswith("Samsung SSD 980 PRO 1TB")
    assert found["calibration"]["kernel"] == "6.12.1-[removed]"
    assert found["calibration"]["measured_on"] == "2026-11-28"
    assert [one["iops"] for one in found["measurements"]] == [990, 1010]
    for private in (SERIAL, "secret-host", "Secret-Host", "ann", "nvme7n1"):
        assert private not in text


def test_a_file_is_read_again_and_gives_its_profile(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, profile = tmp_path / "drive.json", tmp_path / "drive.toml"
    path.write_text(submission_text(submission()))
    assert read_submission(path) == submission()
    assert run(["calibrate", "check", str(path), "-o", str(profile)]) == ExitCode.OK
    shown = capsys.readouterr().out
    assert "firmware 5B2QGXA7, 1.00 TiB" in shown
    assert "2 measurements, a profile of kind fixed" in shown
    assert load_profile(str(profile)).kind == "fixed"


Change = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda found: found.update(schema="blklab.drive/9"), "schema is blklab.drive/9"),
        (lambda found: found["drive"].update(serial=SERIAL), "serial"),
        (lambda found: found["drive"].update(model=""), "drive.model is empty"),
        (lambda found: found["drive"].update(capacity_bytes=0), "capacity_bytes"),
        (lambda found: found["calibration"].update(target="/home/ann"), "name the sender's disk"),
        (lambda found: found["measurements"].pop(), f"{LOAD} has 1 measurements of 2"),
        (lambda found: found["measurements"][0].update(iops=1005.0), f"the rate of {LOAD}"),
        (lambda found: found["calibration"]["figures"][1].update(low=200_000), "interval of latency"),
        (lambda found: found["calibration"]["figures"][1].update(key="latenz"), "figures are no profile"),
        (
            lambda found: found["calibration"].update(
                mixed_errors={"loads": 7, "read_mean": [0, 0], "read_p99": [0, 0], "write_rate": [0, 0]}
            ),
            "mixed_errors",
        ),
    ],
)
def test_a_file_that_was_changed_is_refused(change: Change, message: str, tmp_path: Path) -> None:
    found = json.loads(submission_text(submission()))
    change(found)
    path = tmp_path / "drive.json"
    path.write_text(json.dumps(found))
    with pytest.raises(FormatError, match=r"drive\.json") as raised:
        read_submission(path)
    assert message in str(raised.value)


def test_a_missing_file_and_a_poor_name_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["calibrate", "check", str(tmp_path / "no.json")]) == ExitCode.DATA
    assert run(["calibrate", "check", "no.json", "-o", "a.txt"]) == ExitCode.USAGE
    assert "must end in .toml" in capsys.readouterr().err


@pytest.mark.parametrize("file", ["firmware_rev", "rev"])
def test_the_firmware_is_the_kernels_own(file: str, tmp_path: Path) -> None:
    assert firmware_of(tmp_path) == ""
    (tmp_path / "device").mkdir()
    (tmp_path / "device" / file).write_text("5B2QGXA7 \n")
    assert firmware_of(tmp_path) == "5B2QGXA7"
