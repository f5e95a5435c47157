"""Paths that no other user can make lead elsewhere: each component belongs to root or to us."""

from __future__ import annotations

import os
import stat
from pathlib import Path

_MOST_LINKS = 40
"""As in the kernel (MAXSYMLINKS)."""


def untrusted_component(path: Path) -> str | None:
    """Says which component of a path another user could replace, and why; None if nobody can.

    The owner of a symbolic link can replace it, and so can everybody who may write to the directory of a
    component, unless that is sticky. Components that do not exist yet are trusted if their
    parent is.

    Args:
        path: An absolute path.
    """
    ours = {0, os.geteuid()}
    links = 0
    pending = list(reversed(path.parts[1:]))
    current = Path("/")
    while pending:
        name = pending.pop()
        if name == "..":
            current = current.parent
            continue
        current = current / name
        try:
            status = current.lstat()
        except OSError:
            return None  # not there, or not ours to see: whoever makes it decides
        if status.st_uid not in ours:
            return f"{current} belongs to user {status.st_uid}"
        if stat.S_ISLNK(status.st_mode):
            links += 1
            if links > _MOST_LINKS:
                return f"{current} is one of too many symbolic links"
            target = current.readlink()
            pending += reversed(target.parts[1:] if target.is_absolute() else target.parts)
            current = Path("/") if target.is_absolute() else current.parent
        elif _others_may_rename_in(status):
            return f"other users may write to {current}"
    return None


def _others_may_rename_in(status: os.stat_result) -> bool:
    """Whether others may replace what is in a directory."""
    # The group of an ordinary user's directory is most often his own.
    others = 0o022 if os.geteuid() == 0 else 0o002
    return bool(status.st_mode & others) and not status.st_mode & stat.S_ISVTX
