"""Limits with bursts: found on models that have them, and said to be absent on one that has none."""

from __future__ import annotations

import pytest

from blklab.execution.calibration.disk.document import limit_figures
from blklab.execution.calibration.disk.ground import Measurement, opened_ground
from blklab.execution.calibration.disk.limits import Limits, limit_loads, limits_of
from blklab.execution.calibration.disk.loads import Load
from blklab.spec.machines import load_machine
from blklab.spec.targets import parse_target

MACHINE = load_machine("ordinary")
DISK = "sim:virtual,read_latency=400us,read_spread=200,read_command=20us,parallel=16,queue_depth=64"


def limits(parameters: str) -> Limits:
    with opened_ground(parse_target(DISK + parameters), seed=1, machine=MACHINE) as ground:
        number = 0

        def measure(load: Load, runtime_us: int) -> Measurement:
            nonlocal number
            number += 1
            return ground.measure(load, number=number, runtime_us=runtime_us)

        loads = limit_loads(queue_depth=64, max_sectors_kb=1280, space_bytes=ground.facts.space_bytes)
        return limits_of(measure, loads, most_s=2)


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


def test_a_disk_that_may_not_have_rested_has_a_burst_of_at_least_what_was_seen() -> None:
    found = limits(",io_limit=4000,io_burst=6000")
    burst = {figure.key: figure for figure in limit_figures(found, rested=False)}["io_burst"]
    assert burst.high is None
    assert burst.low is not None
