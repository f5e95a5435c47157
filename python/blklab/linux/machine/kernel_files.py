"""Reading and writing small files of sysfs, procfs and the like."""

from __future__ import annotations

import os
from pathlib import Path


def text_or_empty(path: Path) -> str:
    """The content, stripped of whitespace and NULs; empty if unreadable, as sleeping sensors are."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip().strip("\0")
    except OSError:
        return ""


def write_once(path: Path, value: str) -> None:
    """Writes a value with one write(2).

    Never creates the file: one that has vanished must not come back as a regular file.

    Raises:
        OSError: if the kernel refuses the value.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, value.encode())
    finally:
        os.close(descriptor)
