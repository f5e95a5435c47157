"""Reading and writing small files of sysfs, procfs and the like."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

_BUSY_ATTEMPTS = 200
_BUSY_WAIT_S = 0.005


def text_or_empty(path: Path) -> str:
    """The content, stripped of whitespace and NULs; empty if unreadable, as sleeping sensors are."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip().strip("\0")
    except OSError:
        return ""


def write_once(path: Path, value: str) -> None:
    """Writes a value with one write(2).

    Never creates the file: one that has vanished must not come back as a regular file. Tries again for a
    second while the kernel is busy: Linux 6.18 refuses a switch of the scheduler with EBUSY, instead of
    waiting, while another program's write to ``nr_requests`` is under way.

    Raises:
        OSError: if the kernel refuses the value.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        for attempts_left in reversed(range(_BUSY_ATTEMPTS)):
            if _written(descriptor, value, last=attempts_left == 0):
                return
            time.sleep(_BUSY_WAIT_S)
    finally:
        os.close(descriptor)


def _written(descriptor: int, value: str, *, last: bool) -> bool:
    """Whether the kernel took the value; False if it was busy and this was not the last attempt."""
    try:
        os.write(descriptor, value.encode())
    except OSError as error:
        if error.errno != errno.EBUSY or last:
            raise
        return False
    return True
