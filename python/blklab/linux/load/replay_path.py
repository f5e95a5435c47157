"""The replay's own way from the completion of an I/O to its next one, measured.

A recorded think time runs from an interrupt to the next queueing, so it contains what the program took to
wake up, to collect the I/O and to get back into the kernel. A replay does all this as well, and would take
both. Its own part is measured by a recording of I/Os without think time, and taken off.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from blklab import _core
from blklab.errors import RunFailedError
from blklab.linux.disks.disk import Disk
from blklab.linux.load.replay import ReplayProgram, place, run_replay
from blklab.linux.recording.recorder import recording_of_a_moment
from blklab.linux.recording.request import recording_request
from blklab.linux.scratch.layout import Region
from blklab.recordings.trace import NEVER, read_trace

_COUNT = 2000
_FEWEST = 200
_FILE = "own-path.blkrecord"


def measured_path_ns(
    program: ReplayProgram,
    region: Region,
    disks: Sequence[Disk],
    folder: Path,
    *,
    data: Path | None,
    writes: bool,
) -> int:
    """The median time from a completion to the queueing of the next I/O, of a replay without think time.

    Args:
        program: The program.
        region: Where its I/Os go; if they are writes, its contents are lost.
        disks: Those beneath the region.
        folder: A directory of the run's own.
        data: The directory of the region's file; None for a device.
        writes: Whether to write rather than to read, for files in which nothing was written yet.

    Raises:
        BlklabError: if this machine cannot record, or the I/Os did not reach the disks.
    """
    request = {
        "text": _core.ios_in_turn(_COUNT, region.size_bytes, writes),
        "source": "own-path",
        "places": [place(region, data)],
    }
    file = folder / _FILE
    file.unlink(missing_ok=True)
    try:
        with recording_of_a_moment(recording_request(str(data or region.filename), disks, file, ())):
            report = run_replay(program, json.dumps(request), folder)
        if report.error is not None:
            raise RunFailedError(report.error)
        return _path_ns(file)
    finally:
        file.unlink(missing_ok=True)


def _path_ns(file: Path) -> int:
    trace = read_trace(file)
    ios = trace.ios
    whole = (ios["queued_ns"] != NEVER) & (ios["completed_ns"] != NEVER) & (ios["bytes"] > 0)
    tasks, counts = np.unique(ios["tid"][whole], return_counts=True)
    if not len(counts) or counts.max() < _FEWEST:
        raise RunFailedError("too few of its I/Os reached the disk")
    own = whole & (ios["tid"] == tasks[counts.argmax()])
    queued_ns, completed_ns = np.sort(ios["queued_ns"][own]), np.sort(ios["completed_ns"][own])
    return int(np.median(queued_ns[1:].astype(np.int64) - completed_ns[:-1].astype(np.int64)))
