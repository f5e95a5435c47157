"""Arrays of modelled disks in a guest: btrfs over several of them, and the kernel's own (md)."""

from __future__ import annotations

import os
from typing import Any, cast

import pytest

from blklab.backends.modelled_device import device_facts, require_model
from blklab.backends.protocol import SessionOptions
from blklab.backends.uml import BACKEND
from blklab.backends.uml_arrays import Array, array_of, require_array
from blklab.errors import KernelLacksError, MissingToolError, TunableError
from blklab.guests.kernels.kernel_build import KernelBuild
from blklab.guests.kernels.store import find
from blklab.guests.programs import program_files
from blklab.quantities.units import NS_PER_SECOND
from blklab.records.samples import RunSample
from blklab.spec.guest import GuestOptions
from blklab.spec.profiles import load_profile
from blklab.spec.targets import parse_target
from plain_simulation import simulate

from .guest_runs import measure, only, rate

BTRFS = GuestOptions(filesystem="btrfs")
FILES = (
    "[global]\ndirect=1\nioengine=libaio\niodepth=4\nsize=16m\nbs=64k\nnumber_ios=60\n"
    "[reader]\nrw=randread\n[writer]\nrw=randwrite\n"
)
DISKS = "uml:hdd-7200,raid=10,members=4"


def _members(sample: RunSample) -> list[dict[str, int]]:
    """Checks the members' totals and returns the counts of each."""
    members = cast("list[dict[str, int]]", sample.engine["members"])
    assert sum(member["requests"] for member in members) == sample.engine["requests"]
    for member in members:
        assert 0 < member["device_busy_ns"] <= sample.engine["simulated_ns"]
    return members


@pytest.fixture
def btrfs(real_guest: object) -> GuestOptions:
    try:
        program_files(["mkfs.btrfs"])
    except MissingToolError as error:
        pytest.skip(error.message)
    return BTRFS


@pytest.mark.parametrize("scheduler", ["none", "mq-deadline:fifo_batch=3", "kyber", "bfq"])
def test_btrfs_raid10_writes_twice_and_reads_once(btrfs: GuestOptions, scheduler: str) -> None:
    sample = measure(DISKS, FILES, scheduler, guest=btrfs)
    members = _members(sample)
    assert len(members) == 4
    # 60 reads, 60 writes to two disks each. Nothing of btrfs's own is written so early.
    assert sample.engine["requests"] + sample.engine["merges"] == 60 + 2 * 60
    assert [sum(entry.ios for entry in job.directions) for job in sample.jobs] == [60, 60]
    # Read back from every member, and alike.
    assert sample.settings["hdd-7200/scheduler"] == scheduler.partition(":")[0]
    if ":" in scheduler:
        assert sample.settings["hdd-7200/iosched/fifo_batch"] == "3"


def test_an_array_gives_the_same_bytes_on_one_processor_and_on_two(btrfs: GuestOptions) -> None:
    def bytes_of_a_run() -> dict[str, Any]:
        sample = measure("uml:ssd-sata,raid=10,members=4", FILES, "bfq", guest=btrfs)
        return sample.model_dump(exclude={"started_at", "elapsed_ns"})

    ours = os.sched_getaffinity(0)
    first, second = bytes_of_a_run(), bytes_of_a_run()
    os.sched_setaffinity(0, {min(ours)})
    try:
        alone = bytes_of_a_run()
    finally:
        os.sched_setaffinity(0, ours)
    assert first == second
    assert first == alone


def test_members_have_random_numbers_of_their_own(btrfs: GuestOptions) -> None:
    device = "uml:fixed,latency=1ms,jitter=500us,raid=1,members=2"
    jobs = "[w]\nrw=write\nbs=64k\ndirect=1\nsize=8m\nnumber_ios=50\n"
    first, second = _members(measure(device, jobs, "none", guest=btrfs))
    assert first["requests"] == second["requests"]
    assert first["device_busy_ns"] != second["device_busy_ns"]


def test_chunks_of_btrfs_are_what_they_are(btrfs: GuestOptions) -> None:
    with pytest.raises(TunableError, match="btrfs's stripes are of 64 KiB"):
        measure(f"{DISKS},chunk=128k", FILES, "none", guest=btrfs)


# ---- the kernel's own arrays ----------------------------------------------------------------------


@pytest.fixture
def md(kernel: KernelBuild, real_guest: object) -> None:
    if "CONFIG_BLK_DEV_MD" not in kernel.config:
        pytest.skip(f"the kernel {kernel.name} has no md")


def _random(mode: str, *, depth: int = 1, ios: int = 400) -> str:
    return (
        f"[job]\nrw={mode}\nbs=4k\ndirect=1\nioengine=libaio\niodepth={depth}\nnumber_ios={ios}\nsize=512m\n"
    )


@pytest.mark.usefixtures("md")
def test_stripes_share_the_work() -> None:
    sample = measure(
        "uml:fixed,latency=1ms,depth=1,raid=0,members=4,chunk=64k",
        _random("randread", depth=64, ios=4000),
        "mq-deadline",
        queue={"nr_requests": "64"},
    )
    assert [member["requests"] > 900 for member in _members(sample)] == [True] * 4
    # Four disks of a thousand a second; at times one of them has nothing to do.
    assert 0.9 * 4000 < rate(sample, "job") <= 4000


@pytest.mark.usefixtures("md")
@pytest.mark.parametrize(
    ("level", "members", "latencies", "requests"),
    [("1", 2, 1, 2), ("10", 4, 1, 2), ("5", 4, 2, 4)],
)
def test_what_a_small_write_costs(level: str, members: int, latencies: int, requests: int) -> None:
    """Mirrors write both copies at once; parity is read with the old data before both are written."""
    device = f"uml:fixed,latency=1ms,raid={level},members={members},chunk=64k"
    sample = measure(device, _random("randwrite"), "mq-deadline")
    assert rate(sample, "job") == pytest.approx(1000 / latencies, rel=0.015)
    assert sum(member["requests"] for member in _members(sample)) == pytest.approx(requests * 400, rel=0.01)


@pytest.mark.usefixtures("md")
@pytest.mark.parametrize(
    ("level", "mode", "bound"),
    [
        ("0", "randread", 0.005),
        ("0", "randwrite", 0.005),
        ("10", "randwrite", 0.005),
        # Which copy is read is decided by positions that the two know at different moments.
        ("1", "randread", 0.05),
        ("10", "randread", 0.05),
        ("5", "randread", 0.005),
        # md reads the stripe's other data; the simulator reads the data to be replaced.
        ("5", "randwrite", 0.1),
    ],
)
def test_simulated_arrays_do_as_the_kernels_own(level: str, mode: str, bound: float) -> None:
    array = f"hdd-7200,raid={level},members={2 if level == '1' else 4},chunk=64k"
    jobs = _random(mode, depth=16 if mode == "randread" else 4, ios=600)
    real = measure(f"uml:{array}", jobs, "mq-deadline")
    simulated = simulate(array, jobs, scheduler="mq-deadline")
    assert simulated.engine["requests"] == pytest.approx(real.engine["requests"], rel=0.01)
    (direction,) = simulated.jobs[0].directions
    per_second = direction.ios * NS_PER_SECOND / direction.runtime_ns
    assert per_second == pytest.approx(rate(real, "job"), rel=bound)


@pytest.mark.usefixtures("md")
def test_files_on_an_array_of_the_kernels_own(real_guest: object) -> None:
    try:
        program_files(["mkfs.ext4"])
    except MissingToolError as error:
        pytest.skip(error.message)
    sample = measure(DISKS, FILES, "mq-deadline", guest=GuestOptions(filesystem="ext4"))
    assert [sum(entry.ios for entry in job.directions) for job in sample.jobs] == [60, 60]
    assert all(member["requests"] for member in _members(sample))


@pytest.mark.usefixtures("md")
def test_fio_reads_the_array() -> None:
    guest = GuestOptions(generator="fio")
    own, fio = (
        measure("uml:ssd-sata,raid=0", _random("randread", depth=8), "kyber", guest=one)
        for one in (GuestOptions(), guest)
    )
    assert only(fio).ios == only(own).ios == 400
    assert only(fio).latency.mean_ns == pytest.approx(only(own).latency.mean_ns, rel=0.1)


# ---- what cannot be -----------------------------------------------------------------------------------


class _Kernel:
    """The properties of a kernel that decide whether it can have an array."""

    name, version = "old", "5.10.0"

    def __init__(self, *options: str, has_models: bool = True) -> None:
        self.config = dict.fromkeys(options, "y")
        self.has_models = has_models


def _require(kernel: _Kernel, guest: GuestOptions) -> None:
    require_array(Array("10", 4), cast("KernelBuild", kernel), guest)


def test_a_kernel_without_md_can_have_btrfs() -> None:
    with pytest.raises(KernelLacksError, match=r"without CONFIG_MD_RAID10.*raid=10") as caught:
        _require(_Kernel("CONFIG_MD_RAID0"), GuestOptions())
    assert "--filesystem btrfs" in str(caught.value.hint)
    _require(_Kernel("CONFIG_MD_RAID10"), GuestOptions())
    _require(_Kernel(), BTRFS)
    with pytest.raises(KernelLacksError, match="no ublk"):
        _require(_Kernel(has_models=False), BTRFS)


def test_arrays_are_recognised() -> None:
    def found(text: str) -> Array | None:
        model = require_model(parse_target(text))
        return array_of(device_facts(model, load_profile(model.device)))

    assert found("uml:fixed") is None
    array = found("uml:fixed,raid=5,members=3")
    assert array == Array("5", 3)
    assert array.description(None) == "md raid5 of 3 disks"
    assert array.description("btrfs") == "btrfs raid5 of 3 disks"


def test_the_report_says_who_made_the_array(kernel: KernelBuild, real_guest: object) -> None:
    find()
    with BACKEND.open(
        parse_target(DISKS), SessionOptions(run_id="test", guest=BTRFS, dry_run=True)
    ) as session:
        assert session.target.details["array"] == "btrfs raid10 of 4 disks"
        single = BACKEND.describe(parse_target("uml:hdd-7200")).disks[0].size_bytes
        assert session.target.disks[0].size_bytes == pytest.approx(2 * single, rel=0.001)
