"""Figures of flash drives that can replace each other: intervals, and the loads that tell them apart."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from blklab.labs.calibration.disk.fit import TWO_SIDED
from blklab.labs.calibration.disk.flash import valleys
from blklab.labs.calibration.disk.flash.figures import FlashDrive, FlashLayout, Floats, kib_ns_of, with_facts
from blklab.labs.calibration.disk.flash.filling import Line, Point, Stages, between_s
from blklab.labs.calibration.disk.flash.loads import LoadNumber, refilling
from blklab.labs.calibration.disk.flash.long_writes import long_writes, with_long_writes
from blklab.labs.calibration.disk.flash.refilling import Refill, refilled, with_refill
from blklab.labs.calibration.disk.flash.search import FlashProblem, Observed
from blklab.labs.calibration.disk.flash.valleys import walked
from blklab.labs.calibration.disk.ground import opened_ground
from blklab.labs.calibration.disk.limits import buffer_load
from blklab.labs.calibration.disk.loads import DiskLoad
from blklab.labs.calibration.disk.model import Model
from blklab.labs.calibration.disk.runs import Runs
from blklab.labs.calibration.disk.saved import SavedMeasurements
from blklab.spec.targets import parse_target
from disk_calibrations import MACHINE, SilentObserver, design_for

KIB, MIB = 1 << 10, 1 << 20
NAMES = ("slc_program", "slc_bytes", "buffer_bytes")
UNIT, STRIPE = 32 * KIB, 512 * KIB
TRUTH = {
    "program": 2_050_000,
    "slc_program": 317_000,
    "slc_cache": 263_000_000,
    "buffer": 10 * MIB,
    "slc_fold_rate": 900_000_000,
    "link_write_rate": 553_000_000,
    "command": 3300,
    "interface": 9800,
}
SHAPE = "dies=16,planes=2,page=16384,erase_block=24m,channels=16"
EMPTIED = f"sim:flash,{SHAPE}," + ",".join(f"{key}={value}" for key, value in TRUTH.items())
"""Its fast cells keep up with the link, and are emptied while large writes are on their way."""


@pytest.fixture(scope="module")
def drive() -> FlashDrive:
    with opened_ground(parse_target(EMPTIED), seed=1, machine=MACHINE) as ground:
        return replace(
            with_facts(ground.facts),
            dies=STRIPE // UNIT,
            unit_bytes=UNIT,
            link_write=kib_ns_of(TRUTH["link_write_rate"]),
            command=TRUTH["command"],
            interface=TRUTH["interface"],
        )


class ClosedForm(FlashProblem):
    """A problem whose numbers are a function of the drive."""

    def __init__(
        self, like: FlashDrive, numbers: Callable[[FlashDrive], Sequence[float]], error: float
    ) -> None:
        self.layout = FlashLayout(NAMES)
        self.like = like
        self.model_error = 0.0
        self.numbers = numbers
        self.measured = np.array(numbers(like))
        self.own_errors = np.full(len(self.measured), error)
        self.priors = self.layout.priors()
        self.start = self.layout.vector(like)

    def predicted(self, drive: FlashDrive, seeds: Sequence[int]) -> Floats:
        return np.array([self.numbers(drive)] * len(seeds))


def test_an_interval_follows_a_bent_valley_to_its_ends(drive: FlashDrive) -> None:
    """Only the sum of fast cells and buffer is known well, and that the buffer is about a quarter of it."""
    like = replace(drive, slc_program=300_000, slc_bytes=90e6, buffer_bytes=30e6)

    def numbers(one: FlashDrive) -> list[float]:
        known, vague = math.log(one.slc_bytes + one.buffer_bytes), 0.003 * math.log(one.buffer_bytes)
        return [known, vague, math.log(one.slc_program)]

    problem = ClosedForm(like, numbers, error=0.001)
    found = walked(problem, problem.start)
    low, high = (math.exp(end) for end in found.intervals["buffer_bytes"])
    # The vague number has a third as its error, which the prior makes a little less.
    half = TWO_SIDED / math.hypot(3, 1)
    assert (low, high) == pytest.approx((30e6 * math.exp(-half), 30e6 * math.exp(half)), rel=0.05)
    ends = tuple(math.exp(end) for end in found.intervals["slc_bytes"])
    assert ends == pytest.approx((120e6 - high, 120e6 - low), rel=0.03)
    program = tuple(math.exp(end) for end in found.intervals["slc_program"])
    half = 300_000 * TWO_SIDED * 0.001
    assert program == pytest.approx((300_000 - half, 300_000 + half), rel=2e-4)


def test_the_search_goes_on_from_a_better_place_that_is_met(drive: FlashDrive) -> None:
    """Where derivatives are zero: the numbers have steps, as a drive has that counts in whole pages."""
    truth = replace(drive, slc_program=300_000, slc_bytes=90e6, buffer_bytes=30e6)

    def numbers(one: FlashDrive) -> list[float]:
        pages = math.floor(one.slc_program / 60_000)
        return [
            math.log(one.slc_bytes) - 0.02 * pages,
            math.log(one.slc_bytes + one.buffer_bytes),
            0.01 * pages,
        ]

    problem = ClosedForm(truth, numbers, error=0.002)
    away = replace(truth, slc_program=210_000, slc_bytes=90e6 * math.exp(-0.04), buffer_bytes=30e6 + 3.5e6)
    vector = problem.layout.vector(away)
    assert problem.slopes(vector, [0]) == pytest.approx(0)
    assert problem.cost(vector) > 10
    found = walked(problem, vector)
    assert problem.cost(found.vector) < 1
    for name, entry in zip(NAMES, problem.start.tolist(), strict=True):
        low, high = found.intervals[name]
        assert low <= entry <= high, name


def test_steps_of_whole_pages_count_as_errors_and_smooth_courses_do_not(drive: FlashDrive) -> None:
    like = replace(drive, slc_program=300_000, slc_bytes=90e6, buffer_bytes=30e6)

    def numbers(one: FlashDrive) -> list[float]:
        return [
            math.log(one.slc_bytes) + 0.5 * math.log(one.buffer_bytes),
            0.01 * math.floor(one.slc_bytes / 100e3),
            0.01 * math.floor(one.slc_bytes / 100e3),
        ]

    problem = ClosedForm(like, numbers, error=0.001)
    load = refilling(256, 32, 500, 100_000, 900_000, like.capacity_bytes)
    alike = Observed(LoadNumber(load, "iops", 900_000), log=0.0, error=0.001, count=2)
    problem.rows = [alike, alike, alike]
    problem.reach(problem.start)
    smooth, *stepping = problem.own_errors.tolist()
    assert smooth == pytest.approx(0.001, rel=0.01)
    # Steps of 0.01 are off a smooth course by 0.01 / sqrt(12) in the mean of squares.
    assert stepping == pytest.approx([0.003, 0.003], rel=0.4)


def test_drawn_loads_have_the_error_of_chance_though_few_repetitions_agree(drive: FlashDrive) -> None:
    load = DiskLoad("mixed", 64, 8)
    row = LoadNumber(load, "iops", 100_000, drawn=True)
    model = Model(drive.capacity_bytes, MACHINE)
    model.runtimes_us[load.name] = row.runtime_us
    runs = model.measured(row.device(drive), [load], range(1, 17))[0]
    chance = float(np.std([math.log(run.iops) for run in runs], ddof=1))
    agreeing = Observed(row, log=math.log(runs[0].iops), error=3e-4, count=3)
    problem = FlashProblem([agreeing], FlashLayout(("program",)), drive, model, {})
    # Of three repetitions less four simulations.
    assert problem.own_errors[0] == pytest.approx(chance * math.sqrt(1 / 3 + 1 / 4), rel=0.5)
    apart = replace(agreeing, error=5 * chance)
    assert FlashProblem([apart], FlashLayout(("program",)), drive, model, {}).own_errors[0] > 5 * chance


def test_a_walk_without_restarts_left_has_intervals_nevertheless(
    drive: FlashDrive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A better place is met on each way, and nothing comes of it."""
    like = replace(drive, slc_program=300_000, slc_bytes=90e6, buffer_bytes=30e6)
    entry = FlashLayout(NAMES).vector(like)[0]

    def numbers(one: FlashDrive) -> list[float]:
        moved = abs(math.log(one.slc_program) - entry)
        hollow = 0.002 if 1e-5 < moved < 0.001 else 0.0
        return [math.log(one.slc_program), math.log(one.slc_bytes), math.log(one.buffer_bytes), hollow]

    problem = ClosedForm(like, numbers, error=0.001)
    problem.measured = problem.measured + np.array([0, 0, 0, 0.002])
    monkeypatch.setattr(valleys, "descended", lambda problem, vector, *, free: problem.start)
    found = walked(problem, problem.start)
    for low, high in found.intervals.values():
        assert high - low > 0.001


def test_a_stage_with_few_runs_on_it_is_looked_for() -> None:
    line = Line(rate=170e6, height=153e6)

    def run(time_s: float, *, fast: bool) -> Point:
        heights = [813e6 * time_s, line.height + line.rate * time_s]
        return Point(time_s, min([*heights, 34e6 + 585e6 * time_s] if fast else heights))

    lengths = [0.0015 * 1.6**power for power in range(13)] + [1.0]
    looked = between_s([run(length, fast=True) for length in lengths], line)
    # It lasts from 0.15 to 0.287 s.
    assert sum(0.15 < length < 0.287 for length in looked) >= 3
    assert between_s([run(length, fast=False) for length in lengths], line) == []


@contextmanager
def measuring(folder: Path) -> Iterator[Runs]:
    with opened_ground(parse_target(EMPTIED), seed=1, machine=MACHINE) as ground:
        saved = SavedMeasurements(folder / "saved", design_for(EMPTIED), [])
        yield Runs(ground, saved, planned=500, budget_ns=10**12, observer=SilentObserver())


def test_fast_cells_that_are_emptied_between_writes_are_found(tmp_path: Path, drive: FlashDrive) -> None:
    with measuring(tmp_path) as runs:
        facts = runs.ground.facts
        load = buffer_load(
            queue_depth=facts.queues.depth,
            max_sectors_kb=facts.queues.max_sectors_kb,
            space_bytes=facts.space_bytes,
        )
        for length_s in (2, 4, 8):
            runs.rested(load, 1_000_000 * length_s)
        fills = long_writes(runs, drive)
        assert fills.stages is not None
        found = with_long_writes(runs, drive, fills)
        # Deep large writes alone show more than twice as much.
        seeming = fills.stages.height_bytes / (1 - fills.stages.slow_rate / fills.stages.first_rate)
        assert seeming > 2 * TRUTH["slc_cache"]
        assert found.slc_bytes == pytest.approx(TRUTH["slc_cache"], rel=0.03)
        assert found.buffer_bytes == pytest.approx(TRUTH["buffer"], rel=0.3)
        refill = refilled(runs, found, fills.stages)
        assert refill is not None
        assert refill.fold_rate == pytest.approx(TRUTH["slc_fold_rate"], rel=0.1)
        measured = runs.of(refill.row.load)
        assert len(measured) >= 2
        found = with_refill(found, fills.stages, refill)
        assert found.fold_rate == refill.fold_rate
        assert found.slc_program == pytest.approx(TRUTH["slc_program"], rel=0.15)
        before = len(runs.made)
        larger = replace(found, slc_bytes=100 * found.slc_bytes, buffer_bytes=found.buffer_bytes)
        assert refilled(runs, larger, fills.stages) is None, "no pause of some seconds empties so much"
        assert len(runs.made) == before


def test_without_a_sign_of_emptying_the_program_of_fast_cells_stays(drive: FlashDrive) -> None:
    stages = Stages(
        first_rate=500e6, fast_rate=None, slow_rate=100e6, buffer_bytes=None, height_bytes=90e6, last_s=0.3
    )
    start = replace(drive, slc_bytes=100e6, buffer_bytes=10e6)
    load = refilling(256, 32, 500, 100_000, 900_000, start.capacity_bytes)
    found = with_refill(start, stages, Refill(LoadNumber(load, "iops", 900_000), 300e6))
    assert found == replace(start, fold_rate=300e6)
