"""The replay's own way from the completion of an I/O to its next one, measured.

A recorded think time runs from an interrupt to the next queueing, so it contains what the program took to
wake up, to collect the I/O and to get back into the kernel. A replay does all this as well, and would take
both. Its own part is measured by a recording of I/Os without think time, and taken off.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from blklab import _core
from blklab.errors import BlklabError, RunFailedError
from blklab.linux.disks.disk import Disk
from blklab.linux.load.replay import OwnPath, OwnPaths, ReplayProgram, place, run_replay
from blklab.linux.recording.recorder import recording_of_a_moment
from blklab.linux.recording.request import recording_request
from blklab.linux.scratch.layout import Region
from blklab.linux.scratch.space import Announce
from blklab.recordings.trace import NEVER, read_trace

_COUNT = 1000
_LONGEST_S = 1
"""For disks that take long for each."""
_FEWEST = 50
_BLOCK_SECTORS = 8
_SECTOR_BYTES = 512
_FILE = "own-path.blkrecord"


def found_own_paths(
    program: ReplayProgram,
    region: Region,
    disks: Sequence[Disk],
    folder: Path,
    *,
    data: Path | None,
    writes: bool,
    announce: Announce,
) -> OwnPaths:
    """As `measured_own_paths`; zeros if that is not possible. Says which."""
    try:
        paths = measured_own_paths(program, region, disks, folder, data=data, writes=writes)
    except BlklabError as error:
        announce(
            "recorded think times are kept whole, so a replay of short ones is slower than the program: "
            f"its own time from I/O to I/O is not known ({error.message})"
        )
        return OwnPaths()
    announce(f"recorded think times are cut by a replay's own time from I/O to I/O: {paths}")
    return paths


def measured_own_paths(
    program: ReplayProgram,
    region: Region,
    disks: Sequence[Disk],
    folder: Path,
    *,
    data: Path | None,
    writes: bool,
) -> OwnPaths:
    """The median times from a completion to the queueing of the next I/O, of replays without think time.

    Args:
        program: The program.
        region: Where its I/Os go.
        disks: Those beneath the region.
        folder: A directory of the run's own.
        data: The directory of the region's file; None for a device.
        writes: Whether to write too, which loses the region's contents. Otherwise a write is taken to be as a read.

    Raises:
        BlklabError: if this machine cannot record, or the I/Os did not reach the disks.
    """

    def path_ns(*, asynchronous: bool, writes: bool) -> int:
        request = {
            "text": ios_in_turn(region.size_bytes, writes=writes),
            "source": "own-path",
            "places": [place(region, data)],
            "always_asynchronous": asynchronous,
        }
        return _measured_ns(program, request, str(data or region.filename), disks, folder)

    def path(*, asynchronous: bool) -> OwnPath:
        # First, since a file that was never written has nothing to read on the disk.
        write_ns = path_ns(asynchronous=asynchronous, writes=True) if writes else None
        read_ns = path_ns(asynchronous=asynchronous, writes=False)
        return OwnPath(read_ns, read_ns if write_ns is None else write_ns)

    return OwnPaths(synchronous=path(asynchronous=False), asynchronous=path(asynchronous=True))


def _measured_ns(
    program: ReplayProgram,
    request: Mapping[str, object],
    target: str,
    disks: Sequence[Disk],
    folder: Path,
) -> int:
    file = folder / _FILE
    file.unlink(missing_ok=True)
    try:
        with recording_of_a_moment(recording_request(target, disks, file, ())):
            report = run_replay(program, json.dumps(request), folder)
        if report.error is not None:
            raise RunFailedError(report.error)
        return _path_ns(file)
    finally:
        file.unlink(missing_ok=True)


def ios_in_turn(file_bytes: int, *, writes: bool) -> str:
    """A job file with one task that reads or writes one block after the other, and never thinks."""
    blocks = max(1, file_bytes // (_BLOCK_SECTORS * _SECTOR_BYTES))
    ios = [(writes, number % blocks * _BLOCK_SECTORS, _BLOCK_SECTORS, 0) for number in range(_COUNT)]
    return (
        f"[own-path]\nrw={'write' if writes else 'read'}\ndirect=1\nioengine=libaio\niodepth=1\n"
        f"bs={_BLOCK_SECTORS * _SECTOR_BYTES}\nsize={file_bytes}\nruntime={_LONGEST_S}\nfilename=replay\n"
        f"replay_plan={_core.plans_in_turn([(ios, [], [])])}\n"
    )


def _path_ns(file: Path) -> int:
    ios = read_trace(file).ios
    whole = (ios["queued_ns"] != NEVER) & (ios["completed_ns"] != NEVER) & (ios["bytes"] > 0)
    tasks, counts = np.unique(ios["tid"][whole], return_counts=True)
    if not len(counts) or counts.max() < _FEWEST:
        raise RunFailedError("too few of its I/Os reached the disk")
    own = whole & (ios["tid"] == tasks[counts.argmax()])
    queued_ns, completed_ns = np.sort(ios["queued_ns"][own]), np.sort(ios["completed_ns"][own])
    return int(np.median(queued_ns[1:].astype(np.int64) - completed_ns[:-1].astype(np.int64)))
