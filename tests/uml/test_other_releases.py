"""Guests on later kernels from Debian: what the tests of the stock kernel take for granted."""

from __future__ import annotations

import pytest

from blklab.errors import RequirementError
from blklab.guests.kernels.building import BuildRequest, build
from blklab.guests.kernels.kernel_build import EXACT_CLOCK, PROCESSOR_TIME, KernelBuild
from blklab.records.samples import RunSample
from blklab.shipped import guest_program
from blklab.spec.machines import Machine, load_machine

from .guest_runs import ios, measure, only, simulate

pytestmark = pytest.mark.slow

RELEASES = ("6.12", "7.2", "7.3")
READER = "[reader]\nrw=randread\nbs=4k\niodepth=32\nioengine=libaio\ndirect=1\nruntime=20ms\ntime_based\n"
READER_AND_WRITER = (
    "[global]\nbs=4k\nioengine=libaio\ndirect=1\nruntime=50ms\ntime_based\nsize=1g\n"
    "[reader]\nrw=randread\niodepth=1\n[writer]\nrw=randwrite\niodepth=64\n"
)
SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq")


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


@pytest.fixture(scope="module")
def one_processor() -> Machine:
    return load_machine("ordinary").on_one_processor()


def test_the_instruments_of_every_release_are_built_in(release: KernelBuild) -> None:
    assert {EXACT_CLOCK, PROCESSOR_TIME, "set-ptes"} <= set(release.instruments), release.lacks


def test_it_pays_for_its_scheduler_as_the_simulated_release_does(
    release: KernelBuild, one_processor: Machine
) -> None:
    simulated, tolerance = ("6.12", 0.01) if release.release == (6, 12) else ("7.3", 0.05)
    paid = {}
    for name in SCHEDULERS:
        paid[name] = ios(measure("uml:nvme-tlc", READER, f"{name}@{release.name}", machine=one_processor))
        expected = ios(simulate(f"nvme-tlc,kernel={simulated}", READER, name, one_processor))
        assert paid[name] == pytest.approx(expected, rel=tolerance if name != "none" else 0.01)
    # 6.12 wakes no worker for a read, the others do.
    least = 1.2 if simulated == "6.12" else 1.5
    assert paid["none"] > least * paid["mq-deadline"] > least * paid["bfq"]
    free = {name: ios(measure("uml:nvme-tlc", READER, f"{name}@{release.name}")) for name in ("none", "bfq")}
    assert free["none"] == free["bfq"] > paid["none"]


def test_the_same_costs_give_the_same_bits(release: KernelBuild, one_processor: Machine) -> None:
    for disk in ("uml:ssd-sata", "uml:nvme-tlc"):
        first, second = (
            measure(disk, READER_AND_WRITER, f"bfq@{release.name}", machine=one_processor) for _ in range(2)
        )
        assert first.jobs == second.jobs
        assert first.engine["processors"] == second.engine["processors"]


@pytest.mark.parametrize("scheduler", SCHEDULERS)
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
