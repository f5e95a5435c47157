"""Records what runs on a disk now, for a replay."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from blklab.errors import RunFailedError
from blklab.labs.advice.questions import Watching
from blklab.linux.disks.resolution import Resolution, resolve
from blklab.linux.recording.recorder import record
from blklab.linux.recording.request import recording_request
from blklab.quantities.formatting import count_of
from blklab.quantities.units import format_duration
from blklab.recordings.waits import analyse_waits
from blklab.report.waits.answer import answer_of

FEWEST_IOS = 100
"""Fewer say little about a disk's work."""


@dataclass(frozen=True)
class Watched:
    """A recording that was made."""

    ios: int
    waits: str
    """Where the I/Os waited, in a sentence."""
    remarks: tuple[str, ...]


def usual_file(resolution: Resolution) -> str:
    """``DISK-TIME.blkrecord``, for the current folder."""
    disk = resolution.leaves[0].name.replace("!", "-")
    return f"{disk}-{time.strftime('%Y%m%d-%H%M%S')}.blkrecord"


def watch(target: str, watching: Watching) -> Watched:
    """Records the disks beneath a path.

    Args:
        target: A directory, a file or a block device.
        watching: The file, which must not exist, and how long.

    Raises:
        InterruptedRunError: on a signal; the recording is kept.
        RunFailedError: if nothing reached the disk.
        BlklabError: if this kernel cannot record, or root is missing.
    """
    file, duration_ns = Path(watching.file), watching.duration_ns
    resolution = resolve(target)
    done = record(recording_request(target, resolution.leaves, file, ()), seconds=duration_ns / 1e9)
    if done.interrupted is not None:
        raise done.interrupted
    names = ", ".join(disk.name for disk in resolution.leaves)
    ios = done.tally.ios
    if not ios:
        file.unlink(missing_ok=True)
        raise RunFailedError(
            f"nothing reached {names} within {format_duration(duration_ns)}",
            hint="start the work that the disk is for, and ask again; or name it: --for database",
        )
    remarks = [f"not recorded: {text}" for text in done.missing]
    if done.tally.lost:
        remarks.append("the kernel dropped events: the recording lacks some I/Os")
    if ios < FEWEST_IOS:
        remarks.append(f"{count_of(ios, 'I/O')} in {format_duration(duration_ns)} say little about {names}")
    return Watched(ios, answer_of(analyse_waits(str(file), None)), tuple(remarks))
