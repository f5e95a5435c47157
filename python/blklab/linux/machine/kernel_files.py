"""Small files of the kernel and of programs: read as far as they can be, written in one piece."""

from __future__ import annotations

import os
from pathlib import Path


def text_or_empty(path: Path) -> str:
    """Content without blanks and NULs at its ends; empty if it cannot be read (some sensors sleep)."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip().strip("\0")
    except OSError:
        return ""


def write_once(path: Path, value: str) -> None:
    """Writes a value with one write(2).

    Nothing is created: a file that vanished must not come back as something else.

    Raises:
        OSError: as the kernel refuses it.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, value.encode())
    finally:
        os.close(descriptor)
