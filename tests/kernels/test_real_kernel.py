"""The kernel that `make kernel` built from Debian's source, and the shipped patches on that source."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from blklab.errors import RequirementError
from blklab.guests.kernels import store
from blklab.guests.kernels.building import BuildPlan, BuildRequest, build, plan_build
from blklab.guests.kernels.kernel_build import KernelBuild
from blklab.guests.kernels.names import kernel_names
from blklab.guests.kernels.patches import apply_patches, read_patch, shipped_patches
from blklab.guests.kernels.source import unpack
from blklab.guests.kernels.trees import find_tree


def plan_or_skip(request: BuildRequest) -> BuildPlan:
    try:
        return plan_build(request)
    except RequirementError as error:
        pytest.skip(f"{error.message}; {error.hint}")


@pytest.fixture(scope="module")
def stock() -> KernelBuild:
    """The stock kernel in the user's cache, if it is of this source, configuration and compiler."""
    kernel = plan_or_skip(BuildRequest("stock")).existing
    if kernel is None:
        pytest.skip("the stock kernel is not built (make kernel)")
    return kernel


def test_everything_asked_for_is_in_it(stock: KernelBuild) -> None:
    assert stock.schedulers == ("none", "mq-deadline", "kyber", "bfq")
    assert stock.has_time_travel
    assert "CONFIG_MODULES" not in stock.config
    major, minor = (int(part) for part in stock.version.split(".")[:2])
    assert stock.has_ublk == ((major, minor) >= (6, 0))
    assert set(stock.record.missing_options) == (set() if stock.has_ublk else {"CONFIG_BLK_DEV_UBLK"})


def test_it_is_a_program_that_says_its_release(stock: KernelBuild) -> None:
    with stock.in_use():
        result = subprocess.run([stock.linux, "--version"], capture_output=True, check=True, text=True)
    assert result.stdout.strip() == stock.version


def test_building_it_again_finds_it(stock: KernelBuild) -> None:
    before = stock.linux.stat()
    again, is_new = build(BuildRequest("stock"))
    assert not is_new
    assert again.build_id == stock.build_id
    assert os.path.samestat(again.linux.stat(), before)


def test_the_shipped_patches_apply_to_it(tmp_path: Path) -> None:
    patches = [read_patch(name) for name in shipped_patches()]
    plan = plan_or_skip(BuildRequest("stock", patches=list(shipped_patches())))
    tree, scratch = tmp_path / "tree", tmp_path / "scratch"
    for folder in (tree, scratch):
        folder.mkdir()
    unpack(plan.source, tree, only=[file for patch in patches for file in patch.files])
    apply_patches(patches, tree, scratch)
    assert "mdelay(100)" in (tree / "block" / "kyber-iosched.c").read_text()
    assert "rb_first" in (tree / "block" / "mq-deadline.c").read_text()


def test_the_patched_kernel_differs_in_one_file(stock: KernelBuild) -> None:
    patched = plan_or_skip(BuildRequest("kyber-busy-wait", patches=["kyber-busy-wait"])).existing
    if patched is None:
        pytest.skip("the patched kernel is not built (make kernel)")
    assert patched.version == stock.version
    assert patched.config == stock.config
    assert patched.record.linux_sha256 != stock.record.linux_sha256
    assert [patch.files for patch in patched.record.patches] == [["block/kyber-iosched.c"]]


def kept_tree_or_skip(stock: KernelBuild) -> Path:
    kept = find_tree(stock.record.tree_id)
    if kept is None:
        pytest.skip("the objects of the stock kernel were removed (make kernel builds without them)")
    return kept.folder / "tree"


@pytest.mark.parametrize(
    ("compiled", "level"),
    [
        ("block/bfq-iosched.o", "-O2"),
        ("block/blk-mq.o", "-O2"),
        ("drivers/block/ublk_drv.o", "-O2"),
        ("drivers/block/null_blk/main.o", "-O2"),
        ("kernel/sched/core.o", "-O2"),
        ("arch/um/kernel/time.o", "-O2"),
        ("arch/um/os-Linux/skas/process.o", "-O2"),
        ("mm/page-writeback.o", "-O1"),
        ("kernel/workqueue.o", "-O1"),
        ("fs/ext4/inode.o", "-O1"),
        ("fs/xfs/libxfs/xfs_bmap.o", "-O1"),
        ("lib/zstd/compress/zstd_fast.o", "-O1"),
    ],
)
def test_what_every_io_runs_through_is_compiled_well(stock: KernelBuild, compiled: str, level: str) -> None:
    made = kept_tree_or_skip(stock) / compiled
    command = (made.parent / f".{made.name}.cmd").read_text(encoding="utf-8").splitlines()[0]
    assert re.findall(r" (-O\S+)", command)[-1] == level


@pytest.mark.slow
def test_a_variant_compiles_few_files(stock: KernelBuild) -> None:
    """In the real source: its one file, and the files that carry the release and the symbols."""
    kept_tree_or_skip(stock)
    name = "test-of-blklab"
    try:
        kernel, _ = build(BuildRequest(name, patches=["mq-deadline-wrap", "kyber-busy-wait"]))
        assert kernel.record.compiled_files < 20
    finally:
        if name in kernel_names():
            store.remove(name)
