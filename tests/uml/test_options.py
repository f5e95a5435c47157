"""Options of guests: fio, file systems, this machine's clock, little memory."""

from __future__ import annotations

import shutil

import pytest

from blklab.errors import MissingToolError
from blklab.guests.programs import program_files
from blklab.spec.guest import GuestFilesystem, GuestOptions

from .guest_runs import measure, only, rate

pytestmark = pytest.mark.usefixtures("real_guest")

DEVICE = "uml:ssd-sata"
READS = "[reader]\nrw=randread\nbs=4k\ndirect=1\nioengine=libaio\niodepth=8\nnumber_ios=2000\nsize=64m\n"


def test_fio_finds_what_the_own_generator_finds() -> None:
    if shutil.which("fio") is None:
        pytest.skip("fio is not installed")
    own = measure(DEVICE, READS, "bfq:low_latency=0")
    fio = measure(DEVICE, READS, "bfq:low_latency=0", guest=GuestOptions(generator="fio"))
    assert only(fio).ios == only(own).ios == 2000
    assert rate(fio, "reader") == pytest.approx(rate(own, "reader"), rel=0.1)
    assert only(fio).latency.mean_ns == pytest.approx(only(own).latency.mean_ns, rel=0.1)


@pytest.mark.parametrize("filesystem", ["ext4", "xfs", "btrfs"])
def test_files_on_a_file_system(filesystem: GuestFilesystem) -> None:
    try:
        program_files([f"mkfs.{filesystem}"])
    except MissingToolError as error:
        pytest.skip(error.message)
    guest = GuestOptions(filesystem=filesystem)
    first, second = (measure(DEVICE, READS, "mq-deadline", guest=guest) for _ in range(2))
    assert only(first).ios == 2000
    assert first.model_dump(exclude={"started_at", "elapsed_ns"}) == second.model_dump(
        exclude={"started_at", "elapsed_ns"}
    )


def test_fio_on_a_file_system_finds_what_the_own_generator_finds() -> None:
    try:
        program_files(["fio", "mkfs.ext4"])
    except MissingToolError as error:
        pytest.skip(error.message)
    # Two files of two clones, one shared by name, and one job with an offset in it.
    jobs = READS + "numjobs=2\n[tail]\nrw=read\nbs=64k\ndirect=1\nfilename=log\nsize=8m\noffset=8m\n"
    own, fio = (
        measure(DEVICE, jobs, "mq-deadline", guest=GuestOptions(generator=generator, filesystem="ext4"))
        for generator in ("blkguest", "fio")
    )
    for job in ("reader", "tail"):
        assert rate(fio, job) == pytest.approx(rate(own, job), rel=0.1)
    assert [direction.ios for job in fio.jobs for direction in job.directions] == [
        direction.ios for job in own.jobs for direction in job.directions
    ]


def test_host_time_passes_by_itself() -> None:
    sample = measure(
        "uml:fixed,latency=2ms", READS.replace("2000", "50"), "none", guest=GuestOptions(time="host")
    )
    # A timer of this machine may be late, never early.
    assert only(sample).latency.min_ns >= 2_000_000


def test_a_guest_with_little_memory() -> None:
    assert only(measure(DEVICE, READS, "kyber", guest=GuestOptions(memory_bytes=64 << 20))).ios == 2000


def test_preconditioned_flash_is_used_flash() -> None:
    jobs = READS.replace("randread", "randwrite").replace("64m", "8g")
    device = f"{DEVICE},buffer=1m"  # so that writes reach the flash soon
    used, asked, fresh = (
        measure(f"{device}{condition}", jobs, "none", precondition=precondition)
        for condition, precondition in (("", True), (",condition=random", False), (",condition=fresh", False))
    )
    assert only(used) == only(asked)
    assert rate(used, "reader") < rate(fresh, "reader") / 2
