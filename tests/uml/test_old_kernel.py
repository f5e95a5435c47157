"""Guests on a kernel with the legacy block layer: the real cfq, deadline and noop, in virtual time.

They need a tree of Linux 4.19 or 4.20, which is not ours to ship: `BLKLAB_OLD_LINUX` names it.
"""

from __future__ import annotations

import os
import shutil

import pytest

from blklab.execution.fidelity.cells import selected
from blklab.execution.fidelity.guest_kernel import open_kernel
from blklab.execution.fidelity.legacy_matrix import legacy_matrix
from blklab.execution.fidelity.measured import CellResult
from blklab.execution.fidelity.running import run_cells
from blklab.guests.kernels.building import BuildRequest, build
from blklab.guests.kernels.kernel_build import KernelBuild
from blklab.shipped import guest_program
from blklab.spec.guest import GuestOptions

from .guest_runs import measure, only, rate

pytestmark = pytest.mark.slow

READER = "[reader]\nrw=randread\nbs=4k\niodepth={}\nioengine=libaio\ndirect=1\nruntime=100ms\ntime_based\n"
LEVELS = (
    "[global]\nrw=randread\nbs=4k\ndirect=1\nruntime=2s\ntime_based\nsize=1g\nprioclass=2\n"
    "[high]\nprio=0\n[low]\nprio=7\n"
)
GROUPS = (
    "[global]\nrw=randread\nbs=4k\ndirect=1\nruntime=4s\ntime_based\nsize=1g\n"
    "[one]\ncgroup=one\n[two]\ncgroup=two\n"
)
LEGACY = ("noop", "deadline", "cfq")
MULTI_QUEUE = ("none", "mq-deadline", "kyber", "bfq")
CELLS = (
    "hdd/*/readers-4",
    "hdd/cfq/levels-0-7",
    "fixed4/*/readers-16",
    "hdd1/*/reader-writers",
    "sata/cfq/weights-100-300-600-v1",
)


@pytest.fixture(scope="module")
def old() -> KernelBuild:
    """A kernel of the tree, kept in the user's cache between runs."""
    tree = os.environ.get("BLKLAB_OLD_LINUX")
    if tree is None:
        pytest.skip("BLKLAB_OLD_LINUX names no tree of Linux 4.19 or 4.20")
    if guest_program() is None:
        pytest.skip("the guest program blkguest is not built (make build)")
    kernel, _ = build(BuildRequest("old-linux", source=tree))
    return kernel


def test_it_has_the_schedulers_of_both_block_layers_and_the_usual_clock(old: KernelBuild) -> None:
    assert set(old.schedulers) == {*LEGACY, *MULTI_QUEUE}
    assert old.driver == "modelled_disk" and old.has_time_travel
    assert old.clock.exact is not None


@pytest.mark.parametrize("scheduler", [*LEGACY, *MULTI_QUEUE])
@pytest.mark.parametrize("depth", [1, 32])
def test_a_disk_is_exact_and_runs_are_the_same(old: KernelBuild, scheduler: str, depth: int) -> None:
    choice = f"{scheduler}@{old.name}"
    first = measure("uml:fixed,depth=32", READER.format(depth), choice)
    latency = only(first).latency
    assert (latency.min_ns, latency.max_ns) == (100_000, 100_000)
    assert measure("uml:fixed,depth=32", READER.format(depth), choice).jobs == first.jobs


def test_cfq_gives_time_by_level(old: KernelBuild) -> None:
    """180 and 40 ms of the disk: slices of levels 0 and 7 (`cfq_prio_slice` of block/cfq-iosched.c)."""
    sample = measure("uml:fixed,latency=5ms,depth=1", LEVELS, f"cfq@{old.name}")
    assert 2 < rate(sample, "high") / rate(sample, "low") < 8


@pytest.mark.parametrize(("attribute", "weights"), [("io.weight", (100, 300)), ("blkio.weight", (250, 750))])
def test_cfq_gives_time_by_weight_in_groups_of_either_version(
    old: KernelBuild, attribute: str, weights: tuple[int, int]
) -> None:
    groups = {name: {attribute: str(weight)} for name, weight in zip(("one", "two"), weights, strict=True)}
    sample = measure("uml:fixed,latency=5ms,depth=1,rotational=1", GROUPS, f"cfq@{old.name}", cgroups=groups)
    assert 2 < rate(sample, "two") / rate(sample, "one") < 4


def test_files_lie_on_disks_that_keep_them(old: KernelBuild) -> None:
    if shutil.which("mkfs.ext4") is None:
        pytest.skip("mkfs.ext4 is not installed")
    jobs = "[writer]\nrw=write\nbs=64k\nsize=4m\nfsync=8\n"
    sample = measure("uml:fixed", jobs, f"deadline@{old.name}", guest=GuestOptions(filesystem="ext4"))
    assert sum(direction.ios for direction in sample.jobs[0].directions) >= 64


def test_an_array_has_a_queue_for_each_disk(old: KernelBuild) -> None:
    one, four = (
        measure(f"uml:fixed{array}", READER.format(16), f"deadline@{old.name}")
        for array in (",depth=1", ",depth=1,raid=0,members=4")
    )
    assert 3 < rate(four, "reader") / rate(one, "reader") < 4.1


def test_the_simulator_agrees(old: KernelBuild) -> None:
    cells = selected(legacy_matrix(), CELLS)
    with open_kernel(old.name) as real:
        results = run_cells(cells, real, workers=real.parallel)
    assert [result.failure for result in results] == [None] * len(cells)
    errors = {result.cell: error for result in results if (error := _worst(result)) > 0.05}
    assert not errors


def _worst(result: CellResult) -> float:
    error = result.worst("throughput")
    return 0.0 if error is None else abs(error)
