"""Drives of the atlas: found by their names, with parameters that follow from their figures."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest

from blklab.errors import UnknownNameError
from blklab.shipped import shipped_files
from blklab.spec.atlas import FOLDER, AtlasDrive, drive_models, drives, file_stem, find_drive, require_drive
from blklab.spec.atlas.derivation import MeasuredFigures, parameters
from blklab.spec.profiles import load_profile

ROOT = Path(__file__).parents[2]
PRO = "Samsung SSD 980 PRO 1TB"


def test_there_are_36_drives_whose_files_bear_their_names() -> None:
    known = shipped_files(FOLDER, ".toml")
    assert len(known) == len(drives()) == 36
    assert sorted(known) == sorted(file_stem(model) for model in drive_models())


@pytest.mark.parametrize("name", [PRO, PRO.lower(), PRO.upper(), PRO.replace(" ", "_")])
def test_a_drive_is_found_by_its_name_whatever_the_capitals(name: str) -> None:
    assert load_profile(name).name == PRO
    assert require_drive(name).target == f"sim:{PRO}"


def test_an_unknown_drive_gets_the_closest_names() -> None:
    assert find_drive("Samsung SSD 980 PRO 2TB") is None
    with pytest.raises(UnknownNameError, match="no simulated device") as caught:
        load_profile("samsung ssd 980 pro 2tb")
    assert PRO in str(caught.value.hint)
    with pytest.raises(UnknownNameError, match="the atlas has no drive 'x'") as caught:
        require_drive("x")
    assert "targets --atlas" in str(caught.value.hint)


@pytest.mark.parametrize("drive", drives(), ids=lambda drive: file_stem(drive.model))
def test_a_file_has_the_parameters_that_follow_from_its_figures(drive: AtlasDrive) -> None:
    wanted = parameters(
        MeasuredFigures(drive.model, drive.capacity_bytes, drive.coefficients, drive.facts.get("read_ns"))
    )
    text = drive.path.read_text("utf-8")
    lines = text.split("[calibration]", maxsplit=1)[0].splitlines()
    written = dict(line.split(" = ") for line in lines if " = " in line and not line.startswith("#"))
    named = ("name", "kind", "summary")
    assert {name: value for name, value in written.items() if name not in named} == {
        name: f'"{value}"' if isinstance(value, str) else str(value) for name, value in wanted.items()
    }
    assert load_profile(str(drive.path)).kind == "flash"
    assert "Apache-2.0" in drive.facts["source"]
    assert {solution.name for solution in drive.solutions} >= {"naive"}


def test_commands_of_a_drive_take_one_over_its_rates() -> None:
    drive = require_drive(PRO)
    found, rates = load_profile(PRO), drive.coefficients
    assert found.text is not None
    values = parameters(MeasuredFigures(drive.model, drive.capacity_bytes, rates, None))
    for name, link, coefficient in (
        ("command", "link_read_rate", "rseqiops"),
        ("random_read_command", "link_read_rate", "rrandiops"),
        ("write_command", "link_write_rate", "wseqiops"),
        ("random_write_command", "link_write_rate", "wrandiops"),
    ):
        taken_ns = int(values[name]) + 4096e9 / int(values[link])
        assert math.isclose(1e9 / taken_ns, rates[coefficient], rel_tol=1e-3)


def test_what_a_solution_scales() -> None:
    drive = require_drive(PRO)
    isolation = next(solution for solution in drive.solutions if solution.name == "isolation")
    assert isolation.model(drive.coefficients)["rbps"] == round(drive.coefficients["rbps"] * isolation.scale)


def test_the_writer_says_where_the_results_are_missing() -> None:
    ended = subprocess.run(
        [sys.executable, ROOT / "scripts" / "write-atlas.py", "--data", "/nonexistent"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert "BLKLAB_DRIVE_DATA" in ended.stderr
