"""Disk locks: only one run at a time uses a disk."""

from __future__ import annotations

import fcntl
import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path

from blklab.errors import LockedError
from blklab.linux.disks.disk import Disk
from blklab.linux.journal.state import former_lock_directory, lock_directory, make_private_directory

_held: set[str] = set()
"""Keys of the disks that this process has locked: it takes each lock only once."""


@contextmanager
def disk_locks(disks: Iterable[Disk], *, run_id: str = "") -> Iterator[None]:
    """Locks disks.

    The kernel releases the locks when the process ends, whatever the cause. Disks that this process has
    locked already are skipped.

    Raises:
        LockedError: if another run uses one of them; then none is locked.
    """
    folders = [make_private_directory(lock_directory())]
    former = former_lock_directory()
    folders += [] if former is None else [former]
    taken: list[tuple[str, int]] = []
    try:
        # Always in the same order, so that two runs over several disks cannot block each other.
        for disk in sorted(disks, key=lambda disk: disk.key):
            if disk.key not in _held:
                for folder in folders:
                    descriptor = _take(folder / f"{disk.key}.lock", disk, run_id)
                    taken.append((disk.key, descriptor))
                _held.add(disk.key)
        yield
    finally:
        for key, descriptor in reversed(taken):
            _held.discard(key)
            os.ftruncate(descriptor, 0)
            os.close(descriptor)


def _take(path: Path, disk: Disk, run_id: str) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        owner = _owner(descriptor)
        os.close(descriptor)
        raise LockedError(
            f"another run uses {disk.name}: {owner}", hint="wait until it has ended, or stop it"
        ) from error
    except BaseException:
        os.close(descriptor)
        raise
    since = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    owner = json.dumps({"pid": os.getpid(), "run": run_id, "since": since, "command": " ".join(sys.argv)})
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, owner.encode(), 0)
    return descriptor


def _owner(descriptor: int) -> str:
    """Describes the holder of a lock from what it wrote into the file."""
    try:
        owner = json.loads(os.pread(descriptor, 65536, 0))
        run = f"run {owner['run']}, " if owner["run"] else ""
        return f"{run}process {owner['pid']} since {owner['since']} ({owner['command']})"
    except (ValueError, KeyError, TypeError):  # it has taken the lock but not written yet
        return "one that has just started"
