"""Calibration of disks with an arm: what each designed load tells of a model whose figures are known."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blklab.errors import RequirementError
from blklab.labs.calibration.disk.fit import TWO_SIDED
from blklab.labs.calibration.disk.ground import DiskMeasurement, SessionGround, opened_ground
from blklab.labs.calibration.disk.hdd.calibrate import arm_calibrated
from blklab.labs.calibration.disk.hdd.closed_form import (
    Designed,
    closed_form,
    jump_distances,
    place_error,
)
from blklab.labs.calibration.disk.hdd.curves import likely_seeks_ns, with_best_curve
from blklab.labs.calibration.disk.hdd.figures import ArmDisk, Memory, SeekCurve
from blklab.labs.calibration.disk.hdd.loads import (
    JUMPS,
    ahead,
    burst,
    holdouts,
    in_order,
    jumps,
    turns,
)
from blklab.labs.calibration.disk.hdd.mechanics import revolution
from blklab.labs.calibration.disk.hdd.memory import segment_sectors, segments
from blklab.labs.calibration.disk.hdd.observed import Row, error_of
from blklab.labs.calibration.disk.loads import ARM_PROBES, CalibrationLoad
from blklab.labs.calibration.disk.model import Model
from blklab.labs.calibration.disk.placed_loads import PlacedLoad
from blklab.labs.calibration.disk.profile_file import profile_text
from blklab.labs.calibration.disk.runs import Runs
from blklab.labs.calibration.disk.saved import SavedMeasurements
from blklab.spec.profiles import load_profile
from blklab.spec.targets import parse_target
from disk_calibrations import MACHINE, SilentObserver, calibration_of, design_for
from plain_simulation import simulate

DISK = "hdd,rpm=7200,cache_segments=5,segment_sectors=160,cylinders=30000"
REVOLUTION_NS = 60e9 / 7200
SINGLE_US = 12_000.0
SPACE = 300 << 30


def an_arm_disk(**changes: Any) -> ArmDisk:
    disk = ArmDisk(
        capacity_bytes=3 * SPACE,
        queue_depth=32,
        revolution_ns=REVOLUTION_NS,
        switch_ns=600_000,
        outer_sectors=3072,
        inner_sectors=1536,
        curve=SeekCurve(1_497_000, 19_200, 67_809, 4_508_000, 31),
        write_settle_ns=461_000,
        hit_ns=66_000,
        interface_rate=6e8,
        memory=Memory(
            read_ahead=True, segments=32, segment_sectors=3072, write_sectors=33_792, write_extents=11
        ),
        starvation_ns=2_000_000_000,
        heads=10,
    )
    return replace(disk, **changes)


def taking(ns: float) -> DiskMeasurement:
    """Ten I/Os that all take the same time."""
    times = dict.fromkeys(("mean_ns", "min_ns", "max_ns", "p50_ns", "p95_ns", "p99_ns"), ns)
    return DiskMeasurement(number=0, load="a", at_s=0, took_s=1, ios=10, iops=10, **times)


class Disk:
    """Measures a model, each load with a seed of its own."""

    def __init__(self, ground: SessionGround) -> None:
        self.ground = ground
        self.space_bytes = ground.facts.space_bytes
        self.count = 0

    def measure(self, load: CalibrationLoad, runtime_us: int) -> DiskMeasurement:
        self.count += 1
        return self.ground.measure(load, number=self.count, runtime_us=runtime_us)


def test_a_pause_shows_the_time_of_a_revolution() -> None:
    with opened_ground(parse_target(f"sim:{DISK}"), seed=1, machine=MACHINE) as ground:
        disk = Disk(ground)
        turned = [
            (turn.pause_us, [disk.measure(turn.direct, 400_000)], [disk.measure(turn.paused, 1_500_000)])
            for turn in turns(disk.space_bytes)
        ]
    # As uncertain as the waits of jumps leave it.
    for about in (0.97, 1.03):
        found = revolution(turned, about * REVOLUTION_NS)
        assert found is not None
        assert abs(found.value - REVOLUTION_NS) < 3 * found.error
        assert found.error < 1e-3 * REVOLUTION_NS


def test_no_pair_of_loads_without_whole_revolutions_counts() -> None:
    between_ns = 5.5 * REVOLUTION_NS - 40e6
    assert revolution([(40_000, [taking(9e6)], [taking(9e6 + between_ns)])], REVOLUTION_NS) is None


def test_the_memory_is_counted() -> None:
    with opened_ground(parse_target(f"sim:{DISK}"), seed=1, machine=MACHINE) as ground:
        disk = Disk(ground)
        like = an_arm_disk()
        places = segments(disk.measure, like, space_bytes=disk.space_bytes, single_us=SINGLE_US)
        reach = segment_sectors(disk.measure, like, space_bytes=disk.space_bytes)
    assert (places.low, places.value, places.high) == (5, 5, 5)
    assert reach.low is not None
    assert reach.high is not None
    assert reach.low <= 160 <= reach.high < 170


def test_the_places_of_sectors_are_the_simulators() -> None:
    disk = an_arm_disk()
    text = ",".join(f"{key}={value}" for key, value in disk.parameters().items())
    facts = simulate(f"hdd,{text}", {"r": {"rw": "read", "size": "1m", "io_size": "4k"}}).device
    geometry = disk.geometry
    assert facts["capacity_bytes"] == 512 * sum(geometry.zone_sectors)
    assert facts["capacity_bytes"] >= disk.capacity_bytes
    last = geometry.cylinders_at(np.array([0, facts["capacity_bytes"] - 512]))
    assert 0 == last[0] < geometry.cylinders - 200 < last[1] < geometry.cylinders
    assert geometry.sectors_per_track(0) == 3072
    assert geometry.sectors_per_track(facts["capacity_bytes"] - 512) == 1536


def test_closed_forms_agree_with_the_simulator_about_seeks() -> None:
    disk = an_arm_disk(starvation_ns=1_000_000_000)
    model = Model(disk.capacity_bytes, MACHINE)
    far = jumps(disk.capacity_bytes)[-4]
    model.runtimes_us[far.load.name] = 8_000_000
    [[found]] = model.measured(disk.device, [far.load], [1])
    ends = disk.geometry.cylinders_at(np.array([far.near_bytes, far.near_bytes + far.distance_bytes]))
    seek_ns = disk.curve.over_ns(abs(int(ends[1]) - int(ends[0])))
    assert (found.mean_ns or 0) == pytest.approx(seek_ns + REVOLUTION_NS / 2, rel=0.05)


def test_only_short_jumps_depend_on_where_a_band_begins() -> None:
    disk = an_arm_disk()
    errors = [place_error(disk, jump) for jump in jumps(disk.capacity_bytes)]
    assert min(errors[:2]) > 30_000
    assert max(errors[-8:]) < 10_000


def test_steps_of_a_fit_keep_the_places_of_jumps() -> None:
    """Else a sector more on each track would seem to change short jumps at random."""
    disk = an_arm_disk()
    design = Designed(
        jumps=jumps(disk.capacity_bytes), in_order=[in_order(0.0, disk.capacity_bytes)], again=[]
    )
    more = replace(disk, outer_sectors=disk.outer_sectors + 1)
    nr_jumps = len(design.jumps)
    kept = closed_form(more, design, disk.geometry)[:nr_jumps]
    assert np.array_equal(kept, closed_form(disk, design, disk.geometry)[:nr_jumps])
    assert not np.array_equal(kept, closed_form(more, design, more.geometry)[:nr_jumps])


def test_no_curve_is_quicker_than_a_switch_of_tracks() -> None:
    """The simulator refuses such a disk."""
    disk = an_arm_disk(switch_ns=900_000.0)
    design = Designed(jumps=jumps(disk.capacity_bytes), in_order=[], again=[])
    seeks = np.linspace(3e5, 6e6, len(design.jumps))
    best, tried = with_best_curve(disk, design, seeks, np.full(len(seeks), 1e4))
    for curve in (best.curve, *(one.curve for one in tried)):
        assert round(curve.near_ns) + round(curve.root_ns) * 2**0.5 >= disk.switch_ns


def test_seeks_between_measured_ones_are_within_their_intervals(seed: int) -> None:
    """Also near where the second part of the curve begins, which no seek shows."""
    draw = np.random.default_rng(seed)
    disk = an_arm_disk()
    design = Designed(jumps=jumps(disk.capacity_bytes), in_order=[], again=[])
    distances = jump_distances(disk, design)
    cylinders = disk.geometry.cylinders
    error_ns = 50_000.0
    inside = []
    for _ in range(150):
        far_from = round(draw.uniform(0.1, 0.5) * cylinders)
        root = draw.uniform(2e6, 5e6) / math.sqrt(far_from)
        slope = max(1, round(draw.uniform(0.7, 1.3) * root / (2 * math.sqrt(far_from))))
        near = draw.uniform(8e5, 1.6e6)
        far = near + root * math.sqrt(far_from) - slope * far_from
        truth = replace(disk, curve=SeekCurve(near, root, far_from, far, slope))
        seeks = truth.curve.ns(distances.astype(np.int64), disk.switch_ns)
        measured = np.maximum(1.0, seeks + draw.normal(0, error_ns, len(seeks)))
        _, tried = with_best_curve(disk, design, measured, np.full(len(seeks), error_ns))
        most = min(one.misfit for one in tried) + TWO_SIDED**2
        for part in (1 / 10, 1 / 3, 0.95):
            ends = likely_seeks_ns(disk, part, tried, most)
            inside.append(min(ends) <= truth.seek_over_ns(part) <= max(ends))
    # 450 of which 95 % should be: fewer than 90 % hardly ever.
    assert sum(inside) >= 0.9 * len(inside)


def test_what_is_quick_with_the_arm_is_not_in_the_memory() -> None:
    """Places in turn may come under the head just when the arm gets there."""
    disk = an_arm_disk(revolution_ns=60e9 / 4200)

    def measure(load: CalibrationLoad, runtime_us: int) -> DiskMeasurement:
        places = int(load.name.rsplit("-", 1)[1])
        time_ns = disk.hit_ns + 10_000 if places <= 84 else 0.15 * disk.revolution_ns
        return DiskMeasurement(
            number=0,
            load=load.name,
            at_s=0,
            took_s=1,
            ios=10,
            iops=10,
            p50_ns=time_ns,
            p95_ns=time_ns,
            p99_ns=time_ns,
        )

    assert segments(measure, disk, space_bytes=SPACE, single_us=SINGLE_US).value == 84


def test_no_seek_is_quicker_than_a_shorter_one() -> None:
    curve = SeekCurve(1_000_000, 10_000, 100, 500_000, 10)
    times = curve.ns(np.arange(300), 600_000)
    assert times[0] == 0
    assert times[1] == 600_000
    assert np.all(np.diff(times) >= 0)


def test_loads_stay_within_the_space_and_have_names_of_their_own() -> None:
    for space in (1 << 30, 40 << 30, 8 << 40):
        loads: list[PlacedLoad] = [
            *(one.load for one in jumps(space)),
            *(load for turn in turns(space) for load in (turn.direct, turn.paused)),
            *(in_order(part, space) for part in (0.0, 1.0)),
            *holdouts(space, writes=True),
            ahead(64, space, 20_000),
            burst(block_kib=4, count=8, ordered=False, space_bytes=space, pause_us=1000),
        ]
        assert len({load.name for load in loads}) == len(loads)
        for load in loads:
            workload = load.workload(space_bytes=space, ramp_us=1000, runtime_us=5000)
            assert f"offset={load.offset_bytes}\n" in workload.text
    assert len(jumps(8 << 40)) == len(JUMPS)
    with pytest.raises(ValueError, match="reaches beyond"):
        in_order(1.0, 1 << 40).workload(space_bytes=1 << 30, ramp_us=0, runtime_us=1)


def test_chance_of_the_simulator_is_the_error_of_few_measurements() -> None:
    row = Row(in_order(0.0, SPACE), "mean")
    simulated = [taking(1e6 + step) for step in (-1e4, 0, 1e4)]
    alike, apart = [taking(1e6)] * 4, [taking(1e6), taking(1.2e6)]
    # Of the mean of four less that of three.
    assert error_of(row, alike, simulated) == pytest.approx(1e4 * math.sqrt(1 / 4 + 1 / 3), rel=0.05)
    assert error_of(row, apart, simulated) > 5e4


def test_a_part_of_a_disk_with_an_arm_is_refused(tmp_path: Path) -> None:
    """A file on the disk has only short ways, so the profile would be a guess."""
    target = f"sim:{DISK}"
    with opened_ground(parse_target(target), seed=1, machine=MACHINE) as ground:
        facts = replace(ground.facts, capacity_bytes=2 * ground.facts.capacity_bytes)
        part = SessionGround(ground._session, facts, 1)
        saved = SavedMeasurements(tmp_path / "a.measurements", design_for(target), [])
        runs = Runs(part, saved, planned=10, budget_ns=1, observer=SilentObserver())
        runs.make(ARM_PROBES, 250_000)
        with pytest.raises(RequirementError, match="only a part"):
            arm_calibrated(runs, seed=1, machine=MACHINE)


@pytest.mark.slow
def test_a_disk_with_an_arm_is_recognised_and_found_again(tmp_path: Path) -> None:
    found = calibration_of("sim:hdd-7200", tmp_path / "disk.toml", 1_000_000)
    assert found.kind == "hdd"
    figures = {figure.key: figure for figure in found.figures}
    for key, true, within in (
        ("rpm", 7200, 0.002),
        ("outer_sectors", 3072, 0.02),
        ("inner_sectors", 1536, 0.02),
        ("track_switch", 600_000, 0.1),
        ("write_settle", 461_000, 0.4),
        ("cache_segments", 32, 0),
        ("write_cache_extents", 11, 0.1),
    ):
        assert float(figures[key].value) == pytest.approx(true, rel=within), key
    assert found.model_error < 0.02
    median, large = found.errors()
    assert median < 0.05
    assert large < 0.15
    path = tmp_path / "mine.toml"
    path.write_text(profile_text(found, name="mine"))
    assert load_profile(str(path)).kind == "hdd"
    for scheme in ("sim", "uml"):
        assert parse_target(f"{scheme}:{path}").text.endswith("mine.toml")
    assert simulate(str(path), "random-read-4k-qd1", runtime="100ms").device["queue_depth"] == 32
