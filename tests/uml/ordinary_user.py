"""Commands as an ordinary user, from tests that run as root.

What the user needs may lie where only root gets in (a Python under ``/root``, say). In a separate mount
namespace, empty open folders cover those on the way that are closed to others, and only the needed folders
are mounted again beneath them.
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

_OPEN_TO_OTHERS = 0o001
_STASH = "/mnt"
"""Covered inside the namespace."""


def closed_folder(path: Path) -> Path | None:
    """The outermost folder on the way to a path that lets only its owner pass."""
    for folder in reversed([path, *path.parents]):
        if not folder.stat().st_mode & _OPEN_TO_OTHERS:
            return folder
    return None


def as_user(command: Sequence[str], *, uid: int, gid: int, needs: Sequence[Path]) -> list[str]:
    """The command, run as an ordinary user who can reach what it needs.

    Args:
        command: A program and its arguments.
        uid: The user.
        gid: The user's only group.
        needs: Folders to be reachable under their own names.
    """
    needs = list(dict.fromkeys(path.resolve() for path in needs))
    closed = {path: folder for path in needs if (folder := closed_folder(path)) is not None}
    lines = ["set -e", f"mount -t tmpfs none {_STASH}"]
    for number, path in enumerate(closed):
        kept = f"{_STASH}/{number}"
        lines += [f"mkdir -p {kept}", f"mount --bind {shlex.quote(str(path))} {kept}"]
    for folder in dict.fromkeys(closed.values()):
        lines.append(f"mount -t tmpfs -o mode=755 none {shlex.quote(str(folder))}")
    for number, path in enumerate(closed):
        place = shlex.quote(str(path))
        lines += [f"mkdir -p {place}", f"mount --bind {_STASH}/{number} {place}"]
    user = ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups", "--"]
    lines.append(f"exec {shlex.join([*user, *command])}")
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", "\n".join(lines)]


def can_mount() -> bool:
    """True if root may have a mount namespace; containers often do not allow it."""
    probe = ["unshare", "--mount", "--propagation", "private", "mount", "-t", "tmpfs", "none", _STASH]
    try:
        return subprocess.run(probe, capture_output=True, check=False).returncode == 0
    except OSError:
        return False
