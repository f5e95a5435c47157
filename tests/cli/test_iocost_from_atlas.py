"""`blklab iocost --from-atlas`: lines and files from what others measured."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from blklab.cli import run
from blklab.errors import ExitCode
from blklab.spec.atlas import drives, require_drive

PRO = "Samsung SSD 980 PRO 1TB"


def test_it_prints_the_lines_of_a_solution(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["iocost", "--from-atlas", PRO.lower(), "--solution", "naive"]) == ExitCode.OK
    lines = capsys.readouterr().out.splitlines()
    assert (
        "echo 'MAJ:MIN ctrl=user model=linear rbps=2548800265 rseqiops=364653 rrandiops=304477"
        " wbps=2314893629 wseqiops=66718 wrandiops=84113' > /sys/fs/cgroup/io.cost.model"
    ) in lines
    assert (
        "echo 'MAJ:MIN enable=1 ctrl=user rpct=99.00 rlat=1380 wpct=99.00 wlat=3632 min=75.00 max=100.00'"
        " > /sys/fs/cgroup/io.cost.qos"
    ) in lines


def test_the_first_solution_is_the_default_and_is_scaled(capsys: pytest.CaptureFixture[str]) -> None:
    drive = require_drive(PRO)
    assert run(["iocost", "--from-atlas", PRO]) == ExitCode.OK
    printed = capsys.readouterr().out
    assert "isolation (of isolation, isolated-bandwidth, bandwidth, naive)" in printed
    assert f"rbps={round(drive.coefficients['rbps'] * drive.solutions[0].scale)} " in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from-atlas", "Samsung SSD 980 PRO 2TB"], "did you mean"),
        (["--from-atlas", "all"], "give --hwdb FILE alone"),
        (["--from-atlas", PRO, "--json", "-"], "measures nothing"),
        (["--from-atlas", PRO, "/nonexistent"], "no such file"),
        ([], "Missing argument"),
    ],
)
def test_refusals(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["iocost", *arguments]) != ExitCode.OK
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_solution_that_nobody_measured_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    drive = next(drive for drive in drives() if [one.name for one in drive.solutions] == ["naive"])
    assert run(["iocost", "--from-atlas", drive.model, "--solution", "isolation"]) == ExitCode.USAGE
    assert "has no solution isolation" in capsys.readouterr().err


def test_the_file_for_udev_has_every_drive(tmp_path: Path) -> None:
    file = tmp_path / "95-atlas.hwdb"
    assert run(["iocost", "--from-atlas", "all", "--hwdb", str(file)]) == ExitCode.OK
    text = file.read_text()
    for drive in drives():
        assert f"block:*:name:{drive.model}:fwrev:*:\n" in text
    keys = [line.split("=")[0].strip() for line in text.splitlines() if line.startswith("  ")]
    assert keys.count("IOCOST_SOLUTIONS") == 36
    assert "IOCOST_MODEL_ISOLATED_BANDWIDTH" in keys
    assert "block:*:name:Samsung_SSD_980_PRO_1TB:fwrev:*:" in text


def test_systemd_reads_the_file(tmp_path: Path) -> None:
    if shutil.which("systemd-hwdb") is None:
        pytest.skip("systemd-hwdb is not installed")
    folder = tmp_path / "etc" / "udev" / "hwdb.d"
    folder.mkdir(parents=True)
    run(["iocost", "--from-atlas", "all", "--hwdb", str(folder / "95-atlas.hwdb")])
    root = ["systemd-hwdb", f"--root={tmp_path}"]
    made = subprocess.run([*root, "--strict", "update"], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    key = "block::name:Samsung_SSD_980_PRO_1TB:fwrev:5B2QGXA7:"
    asked = subprocess.run([*root, "query", key], capture_output=True, text=True, check=False)
    assert "IOCOST_SOLUTIONS=isolation isolated-bandwidth bandwidth naive" in asked.stdout
