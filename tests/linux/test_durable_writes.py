"""Recordings of durable writes to real loop devices, which have a cache and need a flush after the data."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from blklab.linux.disks.disk import Disk, read_disk
from blklab.linux.recording.recorder import recording_of_a_moment
from blklab.linux.recording.request import recording_request
from blklab.linux.recording.support import ways_of_recording
from blklab.recordings.trace import NEVER, Columns, Trace, flag_names, operation_names, read_trace
from real_devices import LoopMaker, attach_to_new_loop, remove_loop

WRITES = 50
BYTES = 4096


@pytest.fixture
def below(make_loop: LoopMaker) -> Disk:
    """A loop device over a file."""
    return make_loop(16)


@pytest.fixture
def above(below: Disk) -> Iterator[Disk]:
    """A loop device over the other one, on which each flush of this one is a flush too, and recorded."""
    number = attach_to_new_loop(lambda _: below.dev_path)
    yield read_disk(Path(f"/sys/block/loop{number}").resolve())
    remove_loop(number, below.dev_path)


def _needs(disk: Disk, capture: str) -> None:
    """Skips the test where one cannot record that way, or where the disk needs no flush."""
    reason = next(way.reason for way in ways_of_recording() if way.name == capture)
    if reason is not None:
        pytest.skip(reason)
    queue = disk.sys_path / "queue"
    if (queue / "write_cache").read_text() != "write back\n" or (queue / "fua").read_text() != "0\n":
        pytest.skip("this kernel's loop devices need no flush after a durable write")


def _write_durably(disk: Disk) -> None:
    place = os.open(disk.dev_path, os.O_WRONLY | os.O_DIRECT | os.O_DSYNC)
    try:
        with mmap.mmap(-1, BYTES) as page:
            for number in range(WRITES):
                assert os.pwrite(place, page, number * BYTES) == BYTES
    finally:
        os.close(place)


def _ios_of(trace: Trace, disk: Disk, operation: str) -> Columns:
    number = next(device.number for device in trace.facts.devices if device.name == disk.name)
    wanted: Any = trace.ios["device"] == number
    wanted &= trace.ios["operation"] == operation_names().index(operation)
    return {name: column[wanted] for name, column in trace.ios.items()}


@pytest.mark.root
def test_a_durable_write_ends_with_the_flush_after_its_data(below: Disk, above: Disk, tmp_path: Path) -> None:
    _needs(above, "bpf")
    file = tmp_path / "x.blkrecord"
    with recording_of_a_moment(recording_request("both", [below, above], file, [], capture="bpf")):
        _write_durably(above)
    trace = read_trace(file)
    assert (trace.tally.unmatched, trace.tally.lost) == (0, 0)
    writes, flushes = (
        _ios_of(trace, disk, operation) for disk, operation in ((above, "write"), (below, "flush"))
    )
    places = [number * BYTES // 512 for number in range(WRITES)]
    assert sorted(writes["sector"].tolist()) == places
    assert set(writes["bytes"].tolist()) == {BYTES}
    fua = next(bit for bit, name in flag_names().items() if name == "fua")
    assert (writes["flags"] & fua).all()
    assert (writes["completed_ns"] != NEVER).all()
    for queued, completed in zip(writes["queued_ns"], writes["completed_ns"], strict=True):
        # The flushes of other writes are before or after this one.
        flushed = (flushes["queued_ns"] >= queued) & (flushes["completed_ns"] <= completed)
        assert flushed.any()


@pytest.mark.root
def test_through_tracefs_the_end_of_the_flush_is_told_from_a_missed_write(
    below: Disk, tmp_path: Path
) -> None:
    _needs(below, "tracefs")
    file = tmp_path / "x.blkrecord"
    with recording_of_a_moment(recording_request("one", [below], file, [], capture="tracefs")):
        _write_durably(below)
    trace = read_trace(file)
    assert (trace.tally.unmatched, trace.tally.lost) == (0, 0)
    assert len(_ios_of(trace, below, "write")["sector"]) == WRITES
