"""Guests on later kernels from Debian: what the tests of the stock kernel take for granted."""

from __future__ import annotations

import pytest

from blklab.errors import RequirementError
from blklab.guests.kernels.building import BuildRequest, build
from blklab.guests.kernels.kernel_build import KernelBuild
from blklab.records.samples import RunSample
from blklab.shipped import guest_program

from .guest_runs import measure, only

pytestmark = pytest.mark.slow

RELEASES = ("6.12", "7.2", "7.3")
READER = "[reader]\nrw=randread\nbs=4k\niodepth=32\nioengine=libaio\ndirect=1\nruntime=20ms\ntime_based\n"
READER_AND_WRITER = (
    "[global]\nbs=4k\nioengine=libaio\ndirect=1\nruntime=50ms\ntime_based\nsize=1g\n"
    "[reader]\nrw=randread\niodepth=1\n[writer]\nrw=randwrite\niodepth=64\n"
)


@pytest.fixture(scope="module", params=RELEASES)
def release(request: pytest.FixtureRequest) -> KernelBuild:
    """The newest patch level of a release that Debian has, kept in the user's cache between runs."""
    if guest_program() is None:
        pytest.skip("the guest program blkguest is not built (make build)")
    try:
        kernel, _ = build(BuildRequest(f"linux-{request.param}", release=request.param))
    except RequirementError as error:
        pytest.skip(f"no kernel of {request.param}: {error.message}")
    return kernel


@pytest.mark.parametrize("scheduler", ["none", "mq-deadline", "kyber", "bfq"])
@pytest.mark.parametrize("depth", [32, 57, 64, 256, 1023])
def test_a_disk_of_any_depth_is_exact(release: KernelBuild, depth: int, scheduler: str) -> None:
    """From 57 commands on, the program's ring has four pages, which the unmended kernel maps wrongly."""
    sample = measure(f"uml:fixed,depth={depth}", READER, f"{scheduler}@{release.name}")
    latency = only(sample).latency
    assert (latency.min_ns, latency.max_ns) == (100_000, 100_000)


def test_trapped_calls_give_the_bytes_of_traced_ones(
    release: KernelBuild, monkeypatch: pytest.MonkeyPatch
) -> None:
    def results() -> list[RunSample]:
        disks = ("uml:hdd-7200", "uml:ssd-sata", "uml:fixed,depth=4")
        return [measure(disk, READER_AND_WRITER, f"bfq@{release.name}") for disk in disks]

    assert release.boot_parameters == (("seccomp=auto",) if release.release >= (6, 16) else ())
    trapped = results()
    monkeypatch.setattr(KernelBuild, "boot_parameters", ())
    assert [sample.jobs for sample in results()] == [sample.jobs for sample in trapped]


def test_async_depth_has_the_same_effect_by_either_name(release: KernelBuild) -> None:
    def jobs(tunable: str = "", **queue: str) -> object:
        scheduler = f"mq-deadline@{release.name}{tunable}"
        return measure("uml:fixed", READER_AND_WRITER, scheduler, queue=queue).jobs

    tunable = jobs(":async_depth=4")
    assert tunable == jobs(async_depth="4")
    assert tunable != jobs()
