"""Limits with bursts: found on models that have them, and said to be absent on one that has none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from blklab.labs.calibration.disk.document import limit_figures
from blklab.labs.calibration.disk.ground import DiskMeasurement, SessionGround, opened_ground
from blklab.labs.calibration.disk.lengths import Lengths, measured_lengths
from blklab.labs.calibration.disk.limits import (
    Limits,
    buffer_load,
    limit_loads,
    limits_of,
    with_write_buffer,
)
from blklab.labs.calibration.disk.loads import CalibrationLoad, DiskLoad
from blklab.labs.calibration.disk.runs import Runs
from blklab.labs.calibration.disk.saved import SavedMeasurements
from blklab.spec.targets import parse_target
from disk_calibrations import MACHINE, SilentObserver, design_for

DISK = "sim:virtual,read_latency=400us,read_spread=200,read_command=20us,parallel=16,queue_depth=64"
QUICK_DISK = (
    "sim:virtual,read_latency=145us,read_command=2300,read_rate=2000000000,write_latency=160us,"
    "write_command=10us,write_rate=1900000000,parallel=21,placement=random,full_duplex=0,queue_depth=128"
)
DISK_WITH_QUICK_WRITES = (
    "sim:virtual,read_latency=100us,parallel=64,read_rate=500000000,write_latency=80us,write_rate=1350000000"
)


def limits(parameters: str, disk: str = DISK) -> Limits:
    with opened_ground(parse_target(disk + parameters), seed=1, machine=MACHINE) as ground:
        number = 0

        def measure(load: CalibrationLoad, runtime_us: int) -> DiskMeasurement:
            nonlocal number
            number += 1
            return ground.measure(load, number=number, runtime_us=runtime_us)

        space_bytes = ground.facts.space_bytes
        loads = limit_loads(queue_depth=64, max_sectors_kb=1280, space_bytes=space_bytes)
        found = limits_of(measure, loads, most_s=2)
        if found.any:
            return found
        load = buffer_load(queue_depth=64, max_sectors_kb=1280, space_bytes=space_bytes)
        return with_write_buffer(found, measure, load, most_s=4)


def test_a_limit_of_ios_and_its_burst_are_found() -> None:
    found = limits(",io_limit=4000,io_burst=6000")
    assert found.rate is None
    assert found.ios is not None
    for interval, true in ((found.ios.per_second_interval, 4000), (found.ios.burst_interval, 6000)):
        assert interval[0] <= true <= interval[1] < 1.1 * true
    assert found.below(3000, 4)
    assert not found.below(5000, 4)
    assert found.unlimited_s(20_000, 4) == pytest.approx(0.3, rel=0.05)
    assert found.unlimited_s(3000, 4) == float("inf")


def test_a_limit_of_bytes_is_told_from_one_of_ios() -> None:
    found = limits(",rate_limit=100000000,rate_burst=150000000")
    assert found.ios is None
    assert found.rate is not None
    assert found.rate.per_second_interval[0] <= 1e8 <= found.rate.per_second_interval[1]
    assert found.rate.burst_interval[0] <= 1.5e8 <= found.rate.burst_interval[1]
    assert set(found.parameters()) == {"rate_limit", "rate_burst"}


def test_both_limits_may_be_there() -> None:
    found = limits(",io_limit=4000,io_burst=2000,rate_limit=60000000,rate_burst=100000000")
    assert found.ios is not None
    assert found.rate is not None
    assert found.ios.per_second == pytest.approx(4000, rel=0.02)
    assert found.rate.per_second == pytest.approx(6e7, rel=0.02)


def test_no_limit_is_found_where_there_is_none_and_the_profile_says_how_far() -> None:
    found = limits(",flush=0")
    assert not found.any
    figures = {figure.key: figure for figure in limit_figures(found, rested=True)}
    assert figures["io_limit"].value == 0
    assert figures["io_limit"].how == f"none within {found.seen_ios} I/Os at once"
    assert found.seen_ios > 50_000
    assert figures["write_drain_rate"].value == 0
    assert figures["write_drain_rate"].how.startswith("none within")


def test_a_disk_that_may_not_have_rested_has_a_burst_of_at_least_what_was_seen() -> None:
    found = limits(",io_limit=4000,io_burst=6000")
    burst = {figure.key: figure for figure in limit_figures(found, rested=False)}["io_burst"]
    assert burst.high is None
    assert burst.low is not None


def test_a_write_buffer_is_found_and_slows_down_writes_alone() -> None:
    found = limits(
        ",write_buffer=500000000,write_drain_rate=300000000,write_rate=1500000000,write_latency=50us"
    )
    assert (found.ios, found.rate) == (None, None)
    assert found.writes is not None
    for interval, true in ((found.writes.per_second_interval, 3e8), (found.writes.burst_interval, 5e8)):
        assert interval[0] <= true <= interval[1] < 1.1 * true
    assert set(found.parameters()) == {"write_buffer", "write_drain_rate"}
    assert found.below(20_000, 256)
    assert not found.below(20_000, 256, writes=True)
    assert found.unlimited_s(20_000, 256, writes=True) == pytest.approx(1 / 3, rel=0.1)
    assert found.unlimited_s(20_000, 256) == float("inf")


def test_the_rate_behind_fast_cells_is_that_of_all_dies_with_slow_ones() -> None:
    """32 dies program 16 KiB in a millisecond. Before that, writes fill a buffer and fast cells."""
    found = limits(
        ",dies=32,planes=1,program=1ms,slc_program=300us,slc_cache=800000000,buffer=16m,erase_block=12m",
        disk="sim:flash",
    )
    assert found.writes is not None
    true = 32 * 16_384 * 1000
    assert found.writes.per_second == pytest.approx(true, rel=0.05)
    # While the fast cells fill, the buffer empties three times as fast as later.
    assert found.writes.burst == pytest.approx(0.7 * 8e8 + (16 << 20), rel=0.1)


def test_writes_that_still_slow_down_are_said_to() -> None:
    found = limits(
        ",write_buffer=3000000000,write_drain_rate=300000000,write_rate=1500000000,write_latency=50us"
    )
    assert found.writes is None
    how = {figure.key: figure for figure in limit_figures(found, rested=True)}["write_drain_rate"].how
    assert "to no steady rate yet" in how


@contextmanager
def lengths_on(
    target: str, folder: Path, *, queue_depth: int, single_read_us: float
) -> Iterator[tuple[SessionGround, Lengths]]:
    """The lengths of loads on a disk whose limits were looked for."""
    with opened_ground(parse_target(target), seed=1, machine=MACHINE) as ground:
        saved = SavedMeasurements(folder / "saved", design_for(target), [])
        runs = Runs(ground, saved, planned=100, budget_ns=10**12, observer=SilentObserver())
        loads = limit_loads(
            queue_depth=queue_depth, max_sectors_kb=1280, space_bytes=ground.facts.space_bytes
        )
        found = limits_of(runs.rested, loads, most_s=4)
        yield ground, measured_lengths(runs, found, 1_000_000, single_read_us)


def test_writes_that_are_quicker_than_reads_end_before_their_bucket_is_empty(tmp_path: Path) -> None:
    """They empty it in 45 ms, reads would take 120 ms."""
    target = f"{DISK_WITH_QUICK_WRITES},rate_limit=50000000,rate_burst=60000000"
    with lengths_on(target, tmp_path, queue_depth=64, single_read_us=110) as (ground, lengths):
        assert lengths.limits.rate is not None
        for load in (DiskLoad("write", 256, 8), DiskLoad("mixed", 64, 8), DiskLoad("read", 256, 8)):
            length_us = lengths.of_us(load)
            assert length_us > 5000
            run = ground.measure(load, number=50, runtime_us=length_us)
            assert run.p99_ns < 5e6, "a command that waits for tokens takes longer"
            assert lengths.is_free(load, run.iops)


def test_a_bucket_that_the_first_run_empties_does_not_make_others_too_long(tmp_path: Path) -> None:
    """Both limits are reached after some 33 ms, and the first run lasts 50 ms."""
    target = f"{QUICK_DISK},io_limit=2800,io_burst=3900,rate_limit=44000000,rate_burst=66000000"
    with lengths_on(target, tmp_path, queue_depth=128, single_read_us=145) as (ground, lengths):
        for load in (DiskLoad("read", 4, 64), DiskLoad("read", 256, 8), DiskLoad("write", 256, 8)):
            run = ground.measure(load, number=50, runtime_us=lengths.of_us(load))
            assert run.p99_ns < 5e6, load.name
