"""The replay's own way from the completion of an I/O to its next one, measured.

A recorded think time runs from an interrupt to the next queueing, so it contains what the program took to
wake up, to collect the I/O and to get back into the kernel. A replay does all this as well, and would take
both. Its own part is measured by a recording of I/Os without think time, and taken off.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from blklab import _core
from blklab.errors import RunFailedError
from blklab.linux.disks.disk import Disk
from blklab.linux.load.replay import OwnPath, OwnPaths, PathOfSize, ReplayProgram, place, run_replay
from blklab.linux.recording.recorder import recording_of_a_moment
from blklab.linux.recording.request import recording_request
from blklab.linux.scratch.layout import Region
from blklab.recordings.trace import NEVER, read_trace

_COUNT = 2000
_LONGEST = "1s"
"""For disks that take long for each."""
_FEWEST = 20
_STALLS = 0.01
"""The part of the longest times that do not count: the machine was busy with something else."""
_SMALL_BYTES = 4096
_LARGE_BYTES = 128 << 10
_SECTOR_BYTES = 512
_STRIDE = 7919
"""Blocks from I/O to I/O, a prime. A disk reads ahead of I/Os in order, and a short sleep ends faster."""
_FILE = "own-path.blkrecord"


def measured_own_paths(
    program: ReplayProgram,
    region: Region,
    disks: Sequence[Disk],
    folder: Path,
    *,
    data: Path | None,
    writes: bool,
    home: tuple[int, int] | None = None,
) -> OwnPaths:
    """The mean times from a completion to the queueing of the next I/O, of replays without think time.

    The mean, as late I/Os are made up for later: so the replay's I/Os come at the recorded times in the mean.

    Args:
        program: The program.
        region: Where its I/Os go.
        disks: Those beneath the region.
        folder: A directory of the run's own.
        data: The directory of the region's file; None for a device.
        writes: Whether to write too, which loses the region's contents; else a write counts as a read.
        home: The processor that they keep to if this machine has so many, as `Job.replayed_home`: a task
            wakes up faster on the one that takes the disk's interrupts.

    Raises:
        BlklabError: if this machine cannot record, or the I/Os did not reach the disks.
    """
    # A region may be too small for two sizes.
    sizes = dict.fromkeys(min(size_bytes, region.size_bytes) for size_bytes in (_SMALL_BYTES, _LARGE_BYTES))
    # Writes first, since a file that was never written has nothing to read on the disk.
    kinds = [
        _ReplayKind(asynchronous, writing, size_bytes, home)
        for asynchronous in (False, True)
        for writing in ((True, False) if writes else (False,))
        for size_bytes in sizes
    ]
    file = folder / _FILE
    file.unlink(missing_ok=True)
    try:
        # The first write of all may wait for a journal.
        _run(kinds[0], program, region, data, folder)
        with recording_of_a_moment(recording_request(str(data or region.filename), disks, file, ())):
            for kind in kinds:
                _run(kind, program, region, data, folder)
        found = dict(zip(kinds, _gaps_ns(file, program.path.name, len(kinds)), strict=True))
    finally:
        file.unlink(missing_ok=True)

    def path(*, asynchronous: bool, writing: bool) -> PathOfSize:
        by_size = [
            (kind.size_bytes, gap_ns)
            for kind, gap_ns in found.items()
            if (kind.asynchronous, kind.writes) == (asynchronous, writing and writes)
        ]
        return PathOfSize.through(by_size[0], by_size[-1])

    def both(*, asynchronous: bool) -> OwnPath:
        return OwnPath(
            read=path(asynchronous=asynchronous, writing=False),
            write=path(asynchronous=asynchronous, writing=True),
        )

    return OwnPaths(synchronous=both(asynchronous=False), asynchronous=both(asynchronous=True))


@dataclass(frozen=True)
class _ReplayKind:
    """I/Os whose path is measured."""

    asynchronous: bool
    writes: bool
    size_bytes: int
    home: tuple[int, int] | None

    def request(self, region: Region, data: Path | None) -> str:
        """Replays I/Os of this kind."""
        return json.dumps(
            {
                "text": ios_in_turn(region.size_bytes, self.size_bytes, writes=self.writes, home=self.home),
                "source": "own-path",
                "places": [place(region, data)],
                "always_asynchronous": self.asynchronous,
            }
        )


def _run(kind: _ReplayKind, program: ReplayProgram, region: Region, data: Path | None, folder: Path) -> None:
    report = run_replay(program, kind.request(region, data), folder)
    if report.error is not None:
        raise RunFailedError(report.error)


def ios_in_turn(
    file_bytes: int, block_bytes: int, *, writes: bool, home: tuple[int, int] | None = None
) -> str:
    """A job file with one task that reads or writes scattered blocks, one at a time, and never thinks."""
    blocks, sectors = max(1, file_bytes // block_bytes), block_bytes // _SECTOR_BYTES
    ios = [(writes, number * _STRIDE % blocks * sectors, sectors, 0) for number in range(_COUNT)]
    return (
        f"[own-path]\nrw={'write' if writes else 'read'}\ndirect=1\nioengine=libaio\niodepth=1\n"
        f"bs={block_bytes}\nsize={file_bytes}\nruntime={_LONGEST}\nfilename=replay\n"
        f"replay_plan={_core.plans_in_turn([(ios, [], [])], home)}\n"
    )


def _gaps_ns(file: Path, command: str, count: int) -> list[int]:
    """Of each task, in the order of beginning, the mean time from a completion to the next queueing."""
    trace = read_trace(file)
    ios = trace.ios
    whole = (ios["queued_ns"] != NEVER) & (ios["completed_ns"] != NEVER) & (ios["bytes"] > 0)
    # Others may use the disk meanwhile.
    whole &= np.array([name == command for name in trace.names])[ios["command"]]
    gaps_ns = []
    for task in dict.fromkeys(ios["tid"][whole].tolist()):
        own = whole & (ios["tid"] == task)
        queued_ns, completed_ns = np.sort(ios["queued_ns"][own]), np.sort(ios["completed_ns"][own])
        if len(queued_ns) >= _FEWEST:
            between_ns = np.sort(queued_ns[1:].astype(np.int64) - completed_ns[:-1].astype(np.int64))
            counted = between_ns[: len(between_ns) - int(_STALLS * len(between_ns))]
            gaps_ns.append(max(0, int(counted.mean())))
    if len(gaps_ns) != count:
        raise RunFailedError("too few of its I/Os reached the disk")
    return gaps_ns
