"""Loop devices over memory are recognised, and calibrated in parts of the machine's cost table."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from blklab.labs.calibration.disk.forward import Forward, Logs
from blklab.labs.calibration.disk.ground import opened_ground
from blklab.labs.calibration.disk.loads import DiskLoad
from blklab.labs.calibration.disk.loop_device import LoopFit, fitted_loop, is_closer, model_error
from blklab.labs.calibration.disk.observations import DiskObservation, Row
from blklab.labs.calibration.disk.profile_file import profile_text
from blklab.linux.disks.loop import is_in_memory
from blklab.spec.profiles import load_profile
from blklab.spec.targets import parse_target
from disk_calibrations import MACHINE, calibration_of

LOADS = [DiskLoad("read", 4, depth) for depth in (1, 8, 32, 64)]
RATES = (10_000.0, 60_000.0, 90_000.0, 90_000.0)


def found(error: float = 0.01) -> dict[Row, DiskObservation]:
    return {
        (load, "iops"): DiskObservation(math.log(rate), error, 3)
        for load, rate in zip(LOADS, RATES, strict=True)
    }


def times_the_rates(*factors: float) -> dict[DiskLoad, Logs]:
    return {
        load: {"iops": math.log(rate * factor)}
        for load, rate, factor in zip(LOADS, RATES, factors, strict=True)
    }


def test_the_predictions_with_the_smaller_median_error_are_closer() -> None:
    near, far = times_the_rates(1.05, 0.95, 1, 3), times_the_rates(1.2, 0.9, 1.1, 1)
    assert is_closer(near, far, found(), LOADS)
    assert not is_closer(far, near, found(), LOADS)


def test_scatter_beyond_the_measurements_is_the_models() -> None:
    assert model_error(times_the_rates(1.01, 0.99, 1, 1), found(error=0.05), LOADS) == 0
    beyond = model_error(times_the_rates(1.2, 1 / 1.2, 1.2, 1 / 1.2), found(error=0.01), LOADS)
    assert beyond == pytest.approx(math.log(1.2), rel=0.01)


def test_only_a_loop_device_over_a_file_in_memory_is_one(tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    (proc / "self").mkdir(parents=True)
    mounts = {"memory": "tmpfs", "disk": "ext4"}
    lines = [
        f"9{number} 1 0:9{number} / {tmp_path / folder} rw - {kind} none rw\n"
        for number, (folder, kind) in enumerate(mounts.items())
    ]
    (proc / "self" / "mountinfo").write_text("".join(lines))
    for folder in mounts:
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "file").touch()
        device = tmp_path / f"loop-{folder}"
        (device / "loop").mkdir(parents=True)
        (device / "loop" / "backing_file").write_text(f"{tmp_path / folder / 'file'}\n")
    (tmp_path / "sda").mkdir()
    assert [is_in_memory(name, tmp_path, proc) for name in ("loop-memory", "loop-disk", "sda")] == [
        True,
        False,
        False,
    ]


def test_the_device_has_the_facts_of_the_disk() -> None:
    with opened_ground(parse_target("sim:loop,capacity=64m,depth=32"), seed=1, machine=MACHINE) as ground:
        assert ground.facts.in_memory
        fit = LoopFit(
            {"read_command_percent": 120, "read_copy_percent": 90},
            {"read_command_percent": (110, 130), "read_copy_percent": (80, 100)},
        )
        assert (
            fit.device(ground.facts)
            == "loop,capacity=67108864,depth=32,read_command_percent=120,read_copy_percent=90"
        )
        figures = {figure.key: figure for figure in fit.figures(ground.facts)}
        assert {key: figure.value for key, figure in figures.items()} == {
            "capacity": 64 << 20,
            "depth": 32,
            "read_command_percent": 120,
            "read_copy_percent": 90,
            "write_command_percent": 100,
            "write_copy_percent": 100,
        }
        assert (figures["read_copy_percent"].low, figures["read_copy_percent"].high) == (80, 100)
        assert figures["write_copy_percent"].low is None
    with opened_ground(parse_target("sim:fixed"), seed=1, machine=MACHINE) as ground:
        assert not ground.facts.in_memory


TRUE = {
    "read_command_percent": 60,
    "read_copy_percent": 150,
    "write_command_percent": 180,
    "write_copy_percent": 70,
}
"""Of a made-up loop device."""
TABLES = "loop,capacity=67108864,depth=32"
"""One that takes the times of the cost table."""


def test_parts_of_the_table_are_found() -> None:
    loads = [
        DiskLoad(direction, block_kib, depth)
        for direction in ("read", "write", "mixed")
        for block_kib in (4, 64)
        for depth in (1, 16)
    ]
    other = DiskLoad("read", 32, 3)
    true = ",".join([TABLES, *(f"{key}={value}" for key, value in TRUE.items())])
    with opened_ground(parse_target("sim:loop,capacity=64m,depth=32"), seed=1, machine=MACHINE) as ground:
        forward = Forward(ground.facts, MACHINE, dict.fromkeys([*loads, other], 100_000.0))
        rates = forward.on_devices(dict.fromkeys(loads, true), seed=7)
        measured: dict[Row, DiskObservation] = {
            (load, "iops"): DiskObservation(logs["iops"], 0.01, 3) for load, logs in rates.items()
        }
        fit = fitted_loop(forward, measured, loads)
        of_reads = fitted_loop(forward, measured, [load for load in loads if load.reads_only])
        single: Row = (DiskLoad("read", 64, 1), "iops")
        odd = measured | {single: replace(measured[single], log=measured[single].log - 1)}
        with_odd = fitted_loop(forward, odd, loads)
        (real,), (fitted,), (despite_odd,), (unfitted,) = (
            forward.on_devices({other: device}).values()
            for device in (true, fit.device(ground.facts), with_odd.device(ground.facts), TABLES)
        )
    for key, value in TRUE.items():
        low, high = fit.intervals[key]
        assert low <= value <= high
    assert abs(fitted["iops"] - real["iops"]) < 0.03
    assert abs(despite_odd["iops"] - real["iops"]) < 0.06
    assert abs(unfitted["iops"] - real["iops"]) > 0.1
    assert of_reads.percentages.keys() == {"read_command_percent", "read_copy_percent"}


@pytest.mark.slow
def test_a_simulated_loop_device_is_calibrated_as_one(tmp_path: Path) -> None:
    file = tmp_path / "memory.toml"
    calibration = calibration_of("sim:loop,capacity=256m", file, 1)
    assert calibration.kind == "loop"
    assert calibration.errors()[1] < 0.01
    assert "`blklab calibrate processor`" in calibration.remarks[-1]
    file.write_text(profile_text(calibration, name="memory"))
    profile = load_profile(str(file))
    assert profile.kind == "loop"
