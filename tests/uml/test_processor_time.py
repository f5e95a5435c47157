"""Cost tables in guests: the real kernel pays for its scheduler, as the simulator does."""

from __future__ import annotations

from importlib import import_module

import pytest

from blklab.backends.protocol import SessionOptions
from blklab.errors import RequirementError, UsageError
from blklab.records.samples import RunSample
from blklab.spec.guest import GuestOptions
from blklab.spec.machines import Machine, load_machine
from blklab.spec.targets import parse_target

from .guest_runs import ios, measure, simulate

DEEP = (
    "[deep]\nrw=randread\nbs=4k\ndirect=1\nioengine=libaio\niodepth=32\nsize=1g\ntime_based\nruntime=20ms\n"
)
DEEP_WRITER = DEEP.replace("randread", "randwrite")
STREAMS = "[streams]\nrw=read\nbs=64k\ndirect=1\nnumjobs=4\nsize=1g\ntime_based\nruntime=500ms\n"
BUFFERED = "[buffered]\nrw=write\nbs=4k\nfsync=8\nsize=1g\ntime_based\nruntime=100ms\n"
SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq")


@pytest.fixture
def one_processor() -> Machine:
    return load_machine("ordinary").on_one_processor()


def _seconds(sample: RunSample) -> float:
    return max(job.runtime_ns for job in sample.jobs) / 1e9


@pytest.mark.usefixtures("real_guest")
def test_the_kernel_pays_for_its_scheduler_as_the_simulator_does(one_processor: Machine) -> None:
    found = {name: ios(measure("uml:nvme-tlc", DEEP, name, machine=one_processor)) for name in SCHEDULERS}
    for name, count in found.items():
        assert count == pytest.approx(ios(simulate("nvme-tlc", DEEP, name, one_processor)), rel=0.01)
    assert found["none"] > 1.5 * found["mq-deadline"] > 1.5 * found["bfq"] * 0.99
    free = {name: ios(measure("uml:nvme-tlc", DEEP, name)) for name in ("none", "bfq")}
    assert free["none"] == free["bfq"] > found["none"]


@pytest.mark.usefixtures("real_guest")
@pytest.mark.parametrize("name", ["mq-deadline", "bfq"])
def test_no_worker_is_woken_because_the_disk_has_a_server(one_processor: Machine, name: str) -> None:
    """A task that unplugs its writes dispatches them, though it wakes the disk's server."""
    sample = measure("uml:nvme-tlc", DEEP_WRITER, name, machine=one_processor)
    assert ios(sample) == pytest.approx(ios(simulate("nvme-tlc", DEEP_WRITER, name, one_processor)), rel=0.02)
    assert sample.engine["processors"]["wakes"] < 0.2 * ios(sample)


@pytest.mark.usefixtures("real_guest")
def test_the_same_run_again_gives_the_same_figures(one_processor: Machine) -> None:
    first, second = (measure("uml:nvme-tlc", DEEP, "bfq", machine=one_processor) for _ in range(2))
    assert first.jobs == second.jobs
    assert first.engine["processors"] == second.engine["processors"]
    assert first.engine["processors"]["busy_ns"][0] > 15e6


@pytest.mark.usefixtures("real_guest")
def test_buffered_calls_pay_for_copying(one_processor: Machine) -> None:
    dearer = one_processor.model_copy(
        update={"steps": one_processor.steps.model_copy(update={"copy_page_ns": 50_000})}
    )
    usual, dear = (
        ios(measure("uml:ssd-sata", BUFFERED, "none", machine=table)) for table in (one_processor, dearer)
    )
    assert dear < usual
    assert dear == pytest.approx(ios(simulate("ssd-sata", BUFFERED, "none", dearer)), rel=0.05)


@pytest.mark.usefixtures("real_guest")
def test_bfq_waits_for_sequential_readers_where_computing_takes_time(one_processor: Machine) -> None:
    """Without, the time since a queue's last request wraps around, and bfq takes it for idle."""
    free = ios(measure("uml:hdd-7200", STREAMS, "bfq:low_latency=0"))
    paid = ios(measure("uml:hdd-7200", STREAMS, "bfq:low_latency=0", machine=one_processor))
    assert paid > 3 * free
    assert paid == pytest.approx(
        ios(simulate("hdd-7200", STREAMS, "bfq:low_latency=0", one_processor)), rel=0.05
    )


@pytest.mark.usefixtures("real_guest")
def test_the_hosts_time_takes_no_table(one_processor: Machine) -> None:
    backend = import_module("blklab.backends.uml").BACKEND
    options = SessionOptions(run_id="test", machine=one_processor, guest=GuestOptions(time="host"))
    with (
        pytest.raises(UsageError, match="the host's own time"),
        backend.open(parse_target("uml:fixed"), options),
    ):
        pass


@pytest.mark.usefixtures("real_guest")
def test_a_kernel_without_the_instrument_is_refused(
    one_processor: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("blklab.backends.uml_processor_time.PROCESSOR_TIME", "another-instrument")
    backend = import_module("blklab.backends.uml").BACKEND
    options = SessionOptions(run_id="test", machine=one_processor)
    with (
        pytest.raises(RequirementError, match="without the instrument"),
        backend.open(parse_target("uml:fixed"), options),
    ):
        pass


@pytest.mark.usefixtures("real_guest")
def test_a_file_system_pays_until_its_last_write(one_processor: Machine) -> None:
    """Writes that come after the load, when the file system tidies up, still tell the disk when they came."""
    options = GuestOptions(filesystem="ext4")
    jobs = "[log]\nrw=write\nbs=4k\nsize=16m\nfsync=64\n[late]\nrw=randwrite\nbs=4k\nsize=4m\n"
    paid = measure("uml:ssd-sata", jobs, "mq-deadline", machine=one_processor, guest=options)
    again = measure("uml:ssd-sata", jobs, "mq-deadline", machine=one_processor, guest=options)
    assert paid.jobs == again.jobs
    assert ios(paid) == (16 << 20) // 4096 + (4 << 20) // 4096 + 64  # and the syncs
    free = measure("uml:ssd-sata", jobs, "mq-deadline", guest=options)
    assert 1.0 < _seconds(paid) / _seconds(free) < 3.0


@pytest.mark.usefixtures("real_guest")
def test_fio_pays_as_blklabs_own_load_does(one_processor: Machine) -> None:
    own, fios = (
        ios(
            measure(
                "uml:nvme-tlc", DEEP, "bfq", machine=one_processor, guest=GuestOptions(generator=generator)
            )
        )
        for generator in ("blkguest", "fio")
    )
    assert fios == pytest.approx(own, rel=0.05)
