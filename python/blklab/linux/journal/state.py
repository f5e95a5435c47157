"""Directories for everything that outlives a run: journals, locks, records of `blklab apply`."""

from __future__ import annotations

import os
from pathlib import Path

from blklab.errors import RequirementError, reason_of

STATE_VARIABLE = "BLKLAB_STATE_DIR"
LOCK_VARIABLE = "BLKLAB_LOCK_DIR"
SUFFIX = ".journal"
"""Of the names of journals."""
_DEFAULT_STATE = Path("/var/lib/blklab")
_DEFAULT_LOCKS = Path("/run/lock/blklab")


def state_directory() -> Path:
    """The directory of journals and records: ``$BLKLAB_STATE_DIR`` or /var/lib/blklab. It need not exist."""
    chosen = os.environ.get(STATE_VARIABLE)
    return Path(chosen).absolute() if chosen else _DEFAULT_STATE


def journal_directory() -> Path:
    """The directory of the journals."""
    return state_directory() / "journal"


def lock_directory() -> Path:
    """The directory of disk locks: ``$BLKLAB_LOCK_DIR`` or /run/lock/blklab.

    It does not depend on the state directory: runs with different ones still share the disks.
    """
    chosen = os.environ.get(LOCK_VARIABLE)
    return Path(chosen).absolute() if chosen else _DEFAULT_LOCKS


def make_private_directory(path: Path) -> Path:
    """Creates a directory that only we may write to, with its parents.

    Raises:
        RequirementError: if it cannot be created, or another user could write files there that we would obey.
    """
    try:
        path.mkdir(mode=0o755, parents=True, exist_ok=True)
        status = path.stat()
    except OSError as error:
        raise RequirementError(
            f"{path} cannot be created: {reason_of(error)}",
            hint=f"run as root, or choose another directory with {STATE_VARIABLE}",
        ) from error
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise RequirementError(
            f"other users may write to {path}", hint=f"chown it to yourself and chmod go-w {path}"
        )
    return path
