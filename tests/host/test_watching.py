"""Machine events and speed over time of host runs, preconditioning, and the defaults of tunables."""

from __future__ import annotations

from pathlib import Path

import pytest

from blklab.errors import RefusedError
from blklab.linux.machine.kernel_log import why_unreadable
from blklab.quantities.units import NS_PER_SECOND
from blklab.spec.queue_attributes import QUEUE_ATTRIBUTES
from blklab.spec.schedulers import parse_scheduler_choice
from blklab.spec.writeback_settings import writeback_names
from host.conftest import IOS, READ, WRITE, Filesystem, LoopDevice, cell, opened, work
from real_devices import Mounter, attach_to_new_loop, remove_loop

pytestmark = pytest.mark.root

CLONES = "[r]\nrw=randread\nbs=4k\nsize=4m\ndirect=1\nioengine=libaio\niodepth=4\nnumjobs=3\nnumber_ios=100\n"


def test_a_run_knows_what_the_machine_did_and_whose_the_bytes_were(ext4: Filesystem) -> None:
    reading = work(READ.replace(f"number_ios={IOS}", "number_ios=2000"))
    with opened(str(ext4.folder)) as session:
        session.check([parse_scheduler_choice("none")], [reading])
        session.prepare([reading], lambda line: None)
        sample = session.run(cell("none", reading))
    events = sample.events
    assert events is not None
    assert events.duration_ns >= sample.jobs[0].runtime_ns
    if Path("/proc/pressure/io").exists():
        assert events.pressure("io_some") is not None
    assert events.steal_fraction is not None
    assert events.traffic is not None
    (read,) = sample.jobs[0].directions
    if events.traffic.own_read_bytes == 0:
        pytest.skip("this kernel does not account I/O by task")
    # Direct reads of a file on a separate device: fio's bytes are those that the kernel counted as ours, and
    # nearly all of the device's. fio itself and its libraries are read from elsewhere, if at all.
    assert read.bytes <= events.traffic.own_read_bytes
    assert read.bytes <= events.traffic.read_bytes <= 1.05 * read.bytes + (1 << 20)


def test_speed_over_time_is_recorded(ext4: Filesystem) -> None:
    """Its windows lie within the run, and hold no more than was read.

    On a busy machine some lines of fio's log are late, the last ones missing, or all of them unusable:
    tests/linux/test_fio_rates.py covers these.
    """
    reading = work(READ.replace(f"number_ios={IOS}", "time_based\nruntime=1s"))
    with opened(str(ext4.folder)) as session:
        session.prepare([reading], lambda line: None)
        sample = session.run(cell("none", reading))
    job = sample.jobs[0]
    if job.rates is None:
        pytest.skip("fio's log contradicts its report, as on a busy machine")
    assert job.rates.window_ns == 25_000_000
    assert 0 < len(job.rates.bytes_per_second) * job.rates.window_ns <= job.runtime_ns + job.rates.window_ns
    recorded = sum(job.rates.bytes_per_second) * job.rates.window_ns / NS_PER_SECOND
    # fio rounds to KiB/s.
    assert 0 < recorded <= 1.01 * job.directions[0].bytes + (1 << 20)


def test_clones_are_told_apart(raw: LoopDevice) -> None:
    reading = work(CLONES)
    with opened(raw.device) as session:
        session.check([parse_scheduler_choice("none")], [reading])
        session.prepare([reading], lambda line: None)
        sample = session.run(cell("none", reading))
    job = sample.jobs[0]
    assert job.clone_bytes is not None
    assert job.clone_bytes == [100 * 4096] * 3
    assert job.directions[0].bytes == 300 * 4096


def test_defaults_of_tunables_are_read_and_nothing_stays_changed(raw: LoopDevice) -> None:
    with opened(raw.device) as session:
        defaults = session.tunable_defaults(parse_scheduler_choice("bfq:slice_idle=3"))
        assert defaults is not None
        assert defaults["slice_idle"] == "8"
        of_queue = session.tunable_defaults(parse_scheduler_choice("none"))
        assert of_queue is not None
        assert "nr_requests" in of_queue
        assert of_queue.keys() <= {*QUEUE_ATTRIBUTES, *writeback_names()}
        raw.assert_unchanged()
    with opened(raw.device, dry_run=True) as session:
        assert session.tunable_defaults(parse_scheduler_choice("bfq")) is None


def test_preconditioning_writes_twice_the_size_and_says_so(ext4: Filesystem) -> None:
    writing = work(WRITE)
    said: list[str] = []
    with opened(str(ext4.folder), precondition=True) as session:
        session.check([parse_scheduler_choice("none")], [writing])
        session.prepare([writing], said.append)
    assert "overwriting" in said[-2]
    assert said[-1] == "preconditioned: 16.0 MiB written at random"


def test_preconditioning_leaves_a_device_alone(raw: LoopDevice) -> None:
    before = raw.backing.read_bytes()
    reading = work(READ)
    for allowed in (False, True):
        with (
            opened(raw.device, precondition=True, allow_writes=allowed) as session,
            pytest.raises(RefusedError, match=r"only on blklab.s own scratch space"),
        ):
            session.check([parse_scheduler_choice("none")], [reading])
    assert raw.backing.read_bytes() == before


def test_a_dry_run_shows_preconditioning(ext4: Filesystem) -> None:
    writing = work(WRITE)
    with opened(str(ext4.folder), precondition=True, dry_run=True) as session:
        lines = "\n".join(session.commands(cell("none", writing)))
    assert "[overwrite-0]" in lines
    assert "filename=data/written-0" in lines
    assert "io_size=16777216" in lines


def test_a_disk_that_fails_has_the_kernels_words_in_the_run(mount: Mounter) -> None:
    """A loop device over a file that outgrows its file system: the kernel logs what the driver answered."""
    reason = why_unreadable()
    if reason is not None:
        pytest.skip(f"the kernel's log cannot be read: {reason}")
    image = mount("-t", "tmpfs", "-o", "size=8m", "tmpfs") / "image"
    with image.open("wb") as file:
        file.truncate(48 << 20)
    writing = work("[w]\nrw=write\nbs=1m\nsize=32m\ndirect=1\nioengine=libaio\niodepth=4\n")
    number = attach_to_new_loop(lambda _: image)
    try:
        with opened(f"/dev/loop{number}", allow_writes=True) as session:
            session.check([parse_scheduler_choice("none")], [writing])
            session.prepare([writing], lambda line: None)
            sample = session.run(cell("none", writing))
    finally:
        remove_loop(number, image)
    assert sample.status == "failed"
    assert sample.events is not None
    kinds = {message.kind for message in sample.events.kernel_messages}
    assert "I/O error" in kinds, sample
    assert "the kernel's log: I/O error" in str(sample.error)
    assert f"loop{number}" in sample.events.kernel_messages[0].text
