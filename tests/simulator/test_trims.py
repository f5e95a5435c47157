"""Trims in the simulator: one at a time, never merged with writes, and what a drive saves by them."""

from __future__ import annotations

import pytest

from blklab.errors import BlklabError
from blklab.simulator.simulation import SimulationResult
from plain_simulation import simulate

TRIMS = "[a]\nrw=randtrim\nsize=1m\nioengine=libaio\niodepth=32\n"
SCHEDULERS = ("none", "mq-deadline", "kyber", "kyber-4.12", "bfq", "deadline", "cfq", "anticipatory", "noop")


def one_direction(result: SimulationResult) -> tuple[str, int, int]:
    (entry,) = result.job("a").directions
    return entry.direction, entry.ios, entry.bytes


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_each_trim_waits_for_the_one_before(scheduler: str) -> None:
    """No engine of fio's trims asynchronously, whatever its depth."""
    result = simulate("fixed,latency=100us,depth=32,capacity=64m", TRIMS, scheduler=scheduler)
    assert one_direction(result) == ("trim", 256, 1 << 20)
    assert 25_600_000 <= result.engine["simulated_ns"] < 30_000_000


def test_trims_have_the_last_of_three_sizes() -> None:
    result = simulate("fixed", TRIMS + "bs=4k,8k,16k\n", scheduler="none")
    assert one_direction(result) == ("trim", 64, 1 << 20)


def test_an_array_of_mirrors_trims_all_members() -> None:
    result = simulate("fixed,raid=1,members=2,capacity=64m", TRIMS, scheduler="none")
    assert one_direction(result) == ("trim", 256, 1 << 20)
    assert result.engine["requests"] == 512


@pytest.mark.parametrize("device", ["hdd-7200", "fixed,raid=5,members=3"])
def test_disks_that_take_no_discards_refuse(device: str) -> None:
    with pytest.raises(BlklabError, match="take no discards"):
        simulate(device, TRIMS, scheduler="none")


def test_a_loop_device_copies_nothing_for_a_trim() -> None:
    jobs = "[a]\nrw=trim\nsize=64m\nbs=1m\n"
    device = "loop,command=1us,copy_bandwidth=1g,capacity=64m"
    trimmed = simulate(device, jobs, scheduler="none")
    written = simulate(device, jobs.replace("trim", "write\ndirect=1"), scheduler="none")
    assert trimmed.engine["simulated_ns"] < 100_000
    assert written.engine["simulated_ns"] > 60_000_000


def test_a_trimmed_drive_need_not_move_what_it_forgot() -> None:
    """Random overwriting of a full drive makes it collect garbage, unless most of it was trimmed."""
    writes = (
        "[b]\nstonewall\nfilename=x\nrw=randwrite\ndirect=1\nioengine=libaio\niodepth=32\n"
        "size=100%\nio_size=1g\n"
    )
    trims = "[a]\nfilename=x\nrw=trim\nbs=1m\nsize=100%\n"
    drive = "ssd-sata,capacity=16g"
    full = simulate(drive, writes, scheduler="none").job("b").runtime_ns
    trimmed = simulate(drive, trims + writes, scheduler="none").job("b").runtime_ns
    assert trimmed < 0.5 * full


def test_only_fio_alternates_trims_and_writes() -> None:
    with pytest.raises(BlklabError, match="readwrite"):
        simulate("fixed", "[a]\nrw=trimwrite\nsize=1m\n", scheduler="none")
