"""A scheduler that is one file, in a real kernel: it follows its policy and its tunables."""

from __future__ import annotations

from pathlib import Path

import pytest

from blklab.guests.kernels.building import BuildRequest, build
from blklab.guests.kernels.kernel_build import KernelBuild
from blklab.shipped import shipped_folder

from .guest_runs import measure, rate

pytestmark = pytest.mark.slow

NAME = "fifo-deadline"
READER_BESIDE_WRITER = (
    "[global]\nbs=4k\nioengine=libaio\ndirect=1\nruntime=200ms\ntime_based\nsize=1g\n"
    "[reader]\nrw=randread\niodepth=1\n[writer]\nrw=randwrite\niodepth=32\n"
)


@pytest.fixture(scope="module")
def kernel_with_it(real_guest: Path, kernel: KernelBuild) -> KernelBuild:
    """The stock kernel's source with the example, kept in the user's cache between runs."""
    del real_guest, kernel
    path = shipped_folder("kernel") / "schedulers" / NAME / f"{NAME}.c"
    return build(BuildRequest(NAME, scheduler_files=[str(path)]))[0]


def reads_per_second(kernel: KernelBuild, tunables: str = "") -> float:
    # With so many tags every request waits in the scheduler, not for a tag.
    queue = {"nr_requests": "64"}
    sample = measure(
        "uml:fixed,depth=4", READER_BESIDE_WRITER, f"{NAME}@{kernel.name}{tunables}", queue=queue
    )
    assert rate(sample, "writer") > 0
    return rate(sample, "reader")


def test_reads_overtake_writes_by_their_deadline(kernel_with_it: KernelBuild) -> None:
    """A read waits for the device only; with a deadline 50 ms after the writes', for that long."""
    assert NAME in kernel_with_it.schedulers
    nearer = reads_per_second(kernel_with_it)
    assert nearer == reads_per_second(kernel_with_it)
    assert nearer == pytest.approx(5000, rel=0.05)
    assert reads_per_second(kernel_with_it, ":read_expire=1050") < 30
