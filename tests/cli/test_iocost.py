"""`blklab iocost`: requests that it refuses, the files that it writes, and the lines that it prints."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest

from blklab.cli import run
from blklab.cli.iocost_text import plan_text
from blklab.cli.reference.schemas import DOCUMENTS, schema_of
from blklab.errors import ExitCode
from blklab.labs.iocost.document import SCHEMA
from blklab.labs.iocost.measuring import IocostPlan

DISK = "sim:virtual,queue_depth=4,parallel=2,read_spread=100,write_spread=100"
QUICK = ["--rounds", "3", "--runtime", "100ms", "-q"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing argument"),
        (["sim:fixd"], "no simulated device"),
        (["uml:fixed"], "only models in the simulator"),
        (["sim:fixed", "--profile", "fixed"], "a model is swept itself"),
        (["loop:64m", "--profile", "nope.toml"], "nope.toml: cannot be read"),
        (["sim:fixed", "--no-sweep", "--solution", "isolation"], "needs a sweep"),
        (["sim:fixed", "--solution", "best"], "'best' is not one of"),
        (["sim:fixed", "--rounds", "2"], "2 is not in the range"),
        (["sim:fixed", "--runtime", "1ms"], "tells too little"),
        (["sim:fixed", "--machine", "nope"], "no machine 'nope'"),
        (["sim:fixed", "--hwdb", "a.hwdb"], "finds a drive by its model"),
        (["sim:fixed,capacity=8m"], "too little to calibrate"),
        (["sim:hdd-7200", "--hwdb", "-", "--json", "-", "--drive", "A"], "only one of the results"),
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
    assert run(["iocost", *arguments, "-q"]) in {ExitCode.USAGE, ExitCode.REQUIREMENT}
    assert message in " ".join(capsys.readouterr().err.split())
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_prints_the_six_loads(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["iocost", "sim:fixed", "--dry-run"]) == ExitCode.OK
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    assert all("--queue nomerges=2" in line for line in lines)
    assert re.search(r"blklab run sim:fixed randread-4k-qd\d+ --scheduler none", "\n".join(lines))


def test_a_model_is_measured_swept_and_written(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    hwdb, document = tmp_path / "a.hwdb", tmp_path / "a.json"
    files = ["--hwdb", str(hwdb), "--json", str(document)]
    assert run(["iocost", DISK, *QUICK, *files, "--drive", "ACME 1", "--drive", "ACME_1"]) == ExitCode.OK
    printed = capsys.readouterr().out
    found = json.loads(document.read_text())
    assert found["schema"] == SCHEMA
    jsonschema.validate(found, schema_of(*DOCUMENTS["iocost-1.json"]))
    assert found["chosen"] == "isolation"
    assert f"echo '{found['model_line']}' > /sys/fs/cgroup/io.cost.model" in printed
    assert f"echo '{found['qos_line']}' > /sys/fs/cgroup/io.cost.qos" in printed
    assert " µs " in printed and " us " not in printed
    (asked,) = re.findall(r"^A group that asks for .*$", printed, re.MULTILINE)
    assert len(asked) <= 80
    for one in found["coefficients"]:
        assert re.search(rf"{one['name']} +{round(one['value'])} +{round(one['low'])} to ", printed)
    text = hwdb.read_text()
    assert (
        "\nblock:*:name:ACME 1:fwrev:*:\nblock:*:name:ACME_1:fwrev:*:\n  IOCOST_SOLUTIONS=isolation " in text
    )
    isolation = found["solutions"][0]["parameters"]
    assert f"IOCOST_MODEL_ISOLATION=rbps={isolation['rbps']} rseqiops={isolation['rseqiops']} " in text
    assert re.search(r"^#   rbps \d+ \[\d+, \d+\]$", text, re.MULTILINE)


def test_the_plan_names_size_and_time() -> None:
    assert plan_text(IocostPlan(8, 6, 115_200_000_000)) == (
        "8 loads \N{MULTIPLICATION SIGN} 6 rounds, 48 runs: 2 min of load, and the time that the disk takes "
        "to finish its writes (Ctrl-C ends it and keeps nothing)"
    )


def test_the_plan_is_printed_before_the_first_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["iocost", DISK, *QUICK[:-1], "--no-sweep"]) == ExitCode.OK
    plan = "8 loads \N{MULTIPLICATION SIGN} 3 rounds, 24 runs on a model, in virtual time"
    assert capsys.readouterr().err.splitlines()[0] == plan


def test_the_naive_solution_can_be_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["iocost", DISK, *QUICK, "--no-sweep", "--json"]) == ExitCode.OK
    found = json.loads(capsys.readouterr().out)
    assert found["chosen"] == "naive"
    assert found["sweep"] is None
    parameters = found["solutions"][0]["parameters"]
    assert (parameters["rpct"], parameters["min"], parameters["max"]) == (95, 60, 100)


def test_a_calibrated_profile_names_its_drive_and_its_cost_table(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    profile = tmp_path / "mine.toml"
    profile.write_text(
        'name = "mine"\nkind = "virtual"\nsummary = "s"\nqueue_depth = 4\nparallel = 2\n'
        '[calibration]\nmodel = "ACME 1"\nmachine = "zero-cpu-time"\n'
    )
    hwdb = tmp_path / "mine.hwdb"
    assert (
        run(["iocost", f"sim:{profile}", *QUICK, "--no-sweep", "--hwdb", str(hwdb), "--json"]) == ExitCode.OK
    )
    found = json.loads(capsys.readouterr().out)
    assert found["machine"] == "zero-cpu-time"
    assert found["models"] == ["ACME 1", "ACME_1"]
    assert "block:*:name:ACME_1:fwrev:*:" in hwdb.read_text()
