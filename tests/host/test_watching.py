"""What host runs record besides figures, preconditioning, and the defaults of tunables."""

from __future__ import annotations

from pathlib import Path

import pytest

from blklab.analysis.metrics import METRICS
from blklab.errors import RefusedError
from blklab.spec.schedulers import parse_scheduler_choice
from host.conftest import READ, WRITE, Filesystem, LoopDevice, cell, opened, work

pytestmark = pytest.mark.root

CLONES = (
    "[r]\nrw=randread\nbs=4k\nsize=4m\ndirect=1\nioengine=libaio\niodepth=4\nnumjobs=3\ntime_based\n"
    "runtime=400ms\n"
)


def test_a_run_knows_what_the_machine_did_and_whose_the_bytes_were(ext4: Filesystem) -> None:
    reading = work(READ)
    with opened(str(ext4.folder)) as session:
        session.check([parse_scheduler_choice("none")], [reading])
        session.prepare([reading], lambda line: None)
        sample = session.run(cell("none", reading))
    events = sample.events
    assert events is not None
    assert events.duration_ns >= 200_000_000
    if Path("/proc/pressure/io").exists():
        assert events.pressure("io_some") is not None
    assert events.steal_fraction is not None
    assert events.traffic is not None
    (read,) = sample.jobs[0].directions
    if events.traffic.own_read_bytes == 0:
        pytest.skip("this kernel does not account I/O by task")
    # Direct reads of a file on a device of its own: what fio counted is what the kernel counted as ours,
    # and nearly all that the device did. fio itself and its libraries are read from elsewhere, if at all.
    assert read.bytes <= events.traffic.own_read_bytes
    assert read.bytes <= events.traffic.read_bytes <= 1.05 * read.bytes + (1 << 20)


def test_speed_over_time_adds_up_to_the_run(ext4: Filesystem) -> None:
    reading = work(READ.replace("runtime=200ms", "runtime=1s"))
    with opened(str(ext4.folder)) as session:
        session.prepare([reading], lambda line: None)
        sample = session.run(cell("none", reading))
    job = sample.jobs[0]
    assert job.rates is not None
    assert job.rates.window_ns == 25_000_000
    mean = sum(job.rates.bytes_per_second) / len(job.rates.bytes_per_second)
    throughput = METRICS["throughput"].compute([job])
    assert throughput is not None
    # The end of the last window may be missing, and fio rounds to KiB/s.
    assert mean == pytest.approx(throughput, rel=0.1)
    assert 36 <= len(job.rates.bytes_per_second) <= 41


def test_clones_are_told_apart(raw: LoopDevice) -> None:
    reading = work(CLONES)
    with opened(raw.device) as session:
        session.check([parse_scheduler_choice("none")], [reading])
        session.prepare([reading], lambda line: None)
        sample = session.run(cell("none", reading))
    job = sample.jobs[0]
    assert job.clone_bytes is not None
    assert len(job.clone_bytes) == 3
    assert sum(job.clone_bytes) == job.directions[0].bytes


def test_defaults_of_tunables_are_read_and_nothing_stays_changed(raw: LoopDevice) -> None:
    with opened(raw.device) as session:
        defaults = session.tunable_defaults(parse_scheduler_choice("bfq:slice_idle=3"))
        assert defaults is not None
        assert defaults["slice_idle"] == "8"
        assert session.tunable_defaults(parse_scheduler_choice("none")) == {}
        raw.assert_unchanged()
    with opened(raw.device, dry_run=True) as session:
        assert session.tunable_defaults(parse_scheduler_choice("bfq")) is None


def test_preconditioning_writes_twice_the_size_and_says_so(ext4: Filesystem) -> None:
    writing = work(WRITE)
    said: list[str] = []
    with opened(str(ext4.folder), precondition=True) as session:
        session.check([parse_scheduler_choice("none")], [writing])
        session.prepare([writing], said.append)
    assert "is overwritten at random" in said[-2]
    assert said[-1] == "preconditioned: 16.0 MiB written at random"


def test_preconditioning_leaves_a_device_alone(raw: LoopDevice) -> None:
    before = raw.backing.read_bytes()
    reading = work(READ)
    for allowed in (False, True):
        with (
            opened(raw.device, precondition=True, allow_writes=allowed) as session,
            pytest.raises(RefusedError, match="own scratch space only"),
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
