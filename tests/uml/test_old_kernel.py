"""Guests on a kernel with the legacy block layer: the real cfq, deadline and noop, in virtual time.

They need a tree of Linux 4.19 or 4.20, which is not ours to ship: `BLKLAB_OLD_LINUX` names it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence

import pytest

from blklab.experiment.blocks import NullRunObserver
from blklab.guests.kernels.building import BuildRequest, build
from blklab.guests.kernels.kernel_build import KernelBuild
from blklab.labs.fidelity.cells import FidelityCell, selected
from blklab.labs.fidelity.early_blk_mq import early_blk_mq_matrix
from blklab.labs.fidelity.guest_kernel import open_kernel
from blklab.labs.fidelity.legacy_matrix import legacy_matrix
from blklab.labs.fidelity.measured import CellResult
from blklab.labs.fidelity.running import run_cells
from blklab.labs.studies import replicable_study
from blklab.labs.studies.replication.options import Scaled, StudyKernel, StudyOptions
from blklab.labs.studies.replication.run import run_study
from blklab.records.store import Store
from blklab.shipped import guest_program
from blklab.spec.guest import GuestOptions
from smaller_studies import with_sizes

from .guest_runs import measure, only, rate

pytestmark = pytest.mark.slow

READER = "[reader]\nrw=randread\nbs=4k\niodepth={}\nioengine=libaio\ndirect=1\nruntime=100ms\ntime_based\n"
LEVELS = (
    "[global]\nrw=read\nbs=4k\ndirect=1\nruntime=2s\ntime_based\nsize=1g\nprioclass=2\n"
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
BLK_MQ_CELLS = (
    "fixed4/none/readers-16",
    "hdd/none/readers-4",
    "sata/kyber/reader-writers",
    "fixed32/kyber/randrw-qd8",
    "fixed1/mq-deadline/readers-4",
)
"""Cells whose rules are the same in 6.1, which the simulator follows."""
SHORTER: dict[str, dict[str, object]] = {
    "writers": {
        "size": Scaled[str](full="256m"),
        "runtime": Scaled[str](full="8s"),
        "blocks": Scaled[int](full=3),
    },
    "matrix": {
        "direct_runtime": Scaled[str](full="2s"),
        "buffered_runtime": Scaled[str](full="500ms"),
        "entries": Scaled[list[str]](full=["rt", "be0", "be7", "idle"]),
    },
}
"""Tables of set-up.toml of ionice as far as they differ: a guest boots for every run."""


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
    """180 and 40 ms of the disk: slices of levels 0 and 7 (`cfq_prio_slice` of block/cfq-iosched.c).

    The readers are sequential: cfq serves those that seek together, whatever their levels.
    """
    sample = measure("uml:fixed,latency=5ms,depth=1,rotational=1", LEVELS, f"cfq@{old.name}")
    assert 3 < rate(sample, "high") / rate(sample, "low") < 6


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


@pytest.mark.parametrize(
    ("matrix", "patterns"), [(legacy_matrix, CELLS), (early_blk_mq_matrix, BLK_MQ_CELLS)]
)
def test_the_simulator_agrees(
    old: KernelBuild, matrix: Callable[[], list[FidelityCell]], patterns: Sequence[str]
) -> None:
    cells = selected(matrix(), patterns)
    with open_kernel(old.name) as real:
        results = run_cells(cells, real, workers=real.parallel)
    assert [result.failure for result in results] == [None] * len(cells)
    errors = {result.cell: error for result in results if (error := _worst(result)) > 0.05}
    assert not errors


def test_the_conclusion_of_ionice_holds_under_the_cfq_of_its_author(
    old: KernelBuild, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_sizes(monkeypatch, SHORTER)
    options = StudyOptions("uml", kernel=StudyKernel(old.name, has_legacy_schedulers=True))
    with Store.opened("sqlite://") as store:
        finding = run_study(replicable_study("ionice"), options, store, NullRunObserver())
    for record in finding.records.values():
        assert [sample.error for sample in record.samples if sample.status != "ok"] == []
    outcomes = {one.name: one.outcome for one in finding.result.statements}
    held = ("level-0-faster", "cfq-ratio", "deadline-no-effect", "noop-no-effect", "cfq-reads")
    assert [outcomes[name] for name in held] == ["holds"] * len(held)


def _worst(result: CellResult) -> float:
    error = result.worst("throughput")
    return 0.0 if error is None else abs(error)
