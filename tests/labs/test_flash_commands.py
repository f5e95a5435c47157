"""The controller's time for a command, which many small reads show."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from blklab.labs.calibration.disk.flash.commands import (
    FoundFetch,
    command_loads,
    measure_commands,
    with_fetch,
)
from blklab.labs.calibration.disk.flash.figures import FlashDrive, with_facts
from blklab.labs.calibration.disk.ground import opened_ground
from blklab.labs.calibration.disk.model import Model
from blklab.labs.calibration.disk.runs import Runs
from blklab.labs.calibration.disk.saved import SavedMeasurements
from blklab.spec.targets import parse_target
from disk_calibrations import MACHINE, SilentObserver, design_for


def fast_drive() -> FlashDrive:
    """Its dies do 1.2 million reads a second, its link more."""
    with opened_ground(parse_target("sim:flash"), seed=1, machine=MACHINE) as ground:
        drive = with_facts(ground.facts)
    return replace(drive, dies=64, channels=16, channel=200, link_read=140, link_write=200, command=0.0)


def found(true: FlashDrive, fitted: FlashDrive, folder: Path) -> FoundFetch:
    """The finding on a drive of which something else was fitted to the loads of one job."""
    target = f"sim:{true.device()}"
    with opened_ground(parse_target(target), seed=1, machine=MACHINE) as ground:
        saved = SavedMeasurements(folder / "saved", design_for(target), [])
        runs = Runs(ground, saved, planned=100, budget_ns=1, observer=SilentObserver())
        measure_commands(runs)
        return with_fetch(runs, fitted, Model(ground.facts.space_bytes, MACHINE))


def test_a_controller_that_limits_small_reads_is_found(tmp_path: Path) -> None:
    true = replace(fast_drive(), fetch=1600.0, interface=20_000)
    fitted = replace(true, fetch=0.0, interface=21_600)
    result = found(true, fitted, tmp_path)
    fetch, interface = result.figures
    assert fetch.low is not None and fetch.high is not None
    assert fetch.low <= 1600 <= fetch.high
    assert fetch.high - fetch.low < 160
    assert abs(int(interface.value) - 20_000) < 100
    assert result.drive.parameters()["fetch"] == fetch.value


def test_a_drive_that_is_as_fast_as_fitted_has_no_such_time(tmp_path: Path) -> None:
    true = replace(fast_drive(), command=1500.0)
    result = found(true, true, tmp_path)
    assert (result.drive, result.figures) == (true, ())
    assert "fetch" not in true.parameters()


def test_a_time_that_explains_only_reads_of_one_size_is_not_assumed(tmp_path: Path) -> None:
    """The link's time for a command slows down reads beside large ones far more."""
    true = replace(fast_drive(), command=1500.0)
    result = found(true, replace(true, command=0.0), tmp_path)
    assert not result.figures


def test_loads_fit_into_the_queue() -> None:
    names = [load.name for load in command_loads(1023)]
    assert names == ["read-4k-qd32-x8", "read-4k-qd32-x4-beside-64k"]
    assert {load.depth for load in command_loads(8)} == {8}
