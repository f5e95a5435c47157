"""Control groups v2 beside systemd: shares by weight, limits, and what Debian's kernel lacks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from vm.commands import READ, document, put_file, share_of_each
from vm.machine import Machine

pytestmark = [pytest.mark.vm, pytest.mark.usefixtures("as_before")]

IOPS = (100, 30)
"""Of the slowed disk: the first at which it is the bottleneck, and not a processor that others need too.

Beside other work on an emulated processor bfq gave the smallest group 10.5 to 10.9 % at 100, 11.1 at 300.
"""

SECONDS = 60
"""Long beside the I/Os that are still under way at the end, of which each group has equally many."""

WEIGHTS = {"small": 10, "middle": 30, "large": 60}
LOAD = (
    "[global]\nrw=randread\nbs=4k\nsize=300m\ndirect=1\n"
    "ioengine=libaio\niodepth=16\nramp_time=10s\ntime_based\nruntime={}s\n"
)
"""Deep enough that a job still waits for the disk when its processor is taken away for 100 ms: io.cost gives
a share that its owner leaves for a moment to the others, and the largest group is the first that runs dry.

A busy processor takes a while from the first job's start to the last one's, in which the first has the disk
to itself, so I/Os count after ten seconds.
"""


def three_jobs(seconds: int) -> str:
    """A job in a group of each weight."""
    return LOAD.format(seconds) + "".join(f"[{name}]\ncgroup={name}\n" for name in WEIGHTS)


@pytest.fixture(scope="module")
def slow_disk(machine: Machine) -> str:
    """The rotating SATA disk, with a limit."""
    machine.slow_down("sata0", iops=IOPS[0])
    return f"/dev/{machine.names()['sata0']}"


def assert_by_weight(machine: Machine, disk: str, options: Callable[[int], str]) -> None:
    """Runs the three jobs with options for the disk's limit, and compares their shares with the weights."""
    load = put_file(machine, "/root/three.fio", three_jobs(SECONDS))
    try:
        for iops in IOPS:
            machine.slow_down("sata0", iops=iops)
            result = document(machine, f"run {disk} {load} {options(iops)}")
            if sum(job["iops"] for job in result["jobs"]) > 0.8 * iops:
                break
        else:
            pytest.skip(f"the processor is too busy for {IOPS[-1]} I/Os per second")
    finally:
        machine.slow_down("sata0", iops=IOPS[0])
    shares = share_of_each(result)
    for name, weight in WEIGHTS.items():
        assert shares[name] == pytest.approx(weight / sum(WEIGHTS.values()), rel=0.1), (iops, shares)


def test_bfq_gives_shares_by_weight(machine: Machine, slow_disk: str) -> None:
    """The scheduler is a module, and the attribute exists only while it is loaded."""
    weights = " ".join(f"--cgroup {name}:io.bfq.weight={weight}" for name, weight in WEIGHTS.items())
    options = f"--scheduler bfq:low_latency=0:strict_guarantees=1 {weights}"
    assert_by_weight(machine, slow_disk, lambda _: options)


def test_io_cost_gives_shares_by_weight(machine: Machine, slow_disk: str) -> None:
    """With writeback throttling in force before, which the kernel turns off meanwhile."""
    weights = " ".join(f"--cgroup {name}:io.weight={weight}" for name, weight in WEIGHTS.items())

    def options(limit: int) -> str:
        iops = limit * 9 // 10  # a model that is faster than the disk leaves the shares to the disk
        speeds = f"rbps=1000000000 rseqiops={iops} rrandiops={iops}"
        model = f"{speeds} wbps=1000000000 wseqiops={iops} wrandiops={iops}"
        return (
            f"--scheduler none --cgroup '/:io.cost.model=ctrl=user model=linear {model}' "
            f"--cgroup '/:io.cost.qos=enable=1 ctrl=user min=100 max=100' {weights}"
        )

    assert_by_weight(machine, slow_disk, options)


def test_io_cost_is_compared_with_none_at_all(machine: Machine, slow_disk: str) -> None:
    load = put_file(machine, "/root/read.fio", READ)
    result = document(machine, f"compare {slow_disk} -w {load} -s none,none:/io.cost.qos.enable=1 --blocks 2")
    assert result["state"] == "complete"
    assert not result["failed_runs"]
    assert len({row["scheduler"] for row in result["results"]}) == 2


def test_limits_hold(machine: Machine, slow_disk: str) -> None:
    jobs = LOAD.format(10) + "[slower]\ncgroup=slower\n[slow]\ncgroup=slow\n"
    load = put_file(machine, "/root/two.fio", jobs)
    limits = "--cgroup slower:io.max=riops=20 --cgroup slow:io.max=riops=40"
    result = document(machine, f"run {slow_disk} {load} --scheduler none {limits}")
    iops = {job["name"]: job["iops"] for job in result["jobs"]}
    assert iops == pytest.approx({"slower": 20, "slow": 40}, rel=0.1)


@pytest.mark.parametrize(
    ("attribute", "value", "option"),
    [
        ("io.latency", "target=1000", "CONFIG_BLK_CGROUP_IOLATENCY"),
        ("io.prio.class", "idle", "CONFIG_BLK_CGROUP_IOPRIO"),
    ],
)
def test_what_this_kernel_lacks_is_named(
    machine: Machine, slow_disk: str, attribute: str, value: str, option: str
) -> None:
    if machine.run(f"grep -qx {option}=y /boot/config-$(uname -r)", check=False).code == 0:
        pytest.skip(f"this kernel has {option}")
    load = put_file(machine, "/root/one.fio", LOAD.format(1) + "[small]\ncgroup=small\n")
    refused = machine.run(f"blklab run {slow_disk} {load} --cgroup small:{attribute}={value}", check=False)
    assert refused.code in {2, 3}
    assert option in refused.errors
