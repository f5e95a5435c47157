"""Directories for everything that outlives a run: journals, locks, records of `blklab apply`."""

from __future__ import annotations

import os
from pathlib import Path

from blklab.errors import RequirementError, reason_of
from blklab.linux.directories.trusted_path import untrusted_component

STATE_VARIABLE = "BLKLAB_STATE_DIR"
LOCK_VARIABLE = "BLKLAB_LOCK_DIR"
SUFFIX = ".journal"
"""Of the names of journals."""
_DEFAULT_STATE = Path("/var/lib/blklab")
_DEFAULT_LOCKS = Path("/run/blklab/locks")
"""Only root may make it, unlike a directory in /run/lock."""
_FORMER_LOCKS = Path("/run/lock/blklab")
"""Where earlier versions of blklab have theirs."""


def state_directory() -> Path:
    """The directory of journals and records: ``$BLKLAB_STATE_DIR`` or /var/lib/blklab. It need not exist."""
    chosen = os.environ.get(STATE_VARIABLE)
    return Path(chosen).absolute() if chosen else _DEFAULT_STATE


def journal_directory() -> Path:
    """The directory of the journals."""
    return state_directory() / "journal"


def lock_directory() -> Path:
    """The directory of disk locks: ``$BLKLAB_LOCK_DIR`` or /run/blklab/locks.

    It does not depend on the state directory: runs with different ones still share the disks.
    """
    chosen = os.environ.get(LOCK_VARIABLE)
    return Path(chosen).absolute() if chosen else _DEFAULT_LOCKS


def former_lock_directory() -> Path | None:
    """Where an older blklab that runs now has its locks; None if nobody has, or others could write there."""
    if os.environ.get(LOCK_VARIABLE) or untrusted_component(_FORMER_LOCKS) or not _FORMER_LOCKS.is_dir():
        return None
    return _FORMER_LOCKS


def make_private_directory(path: Path) -> Path:
    """Creates a directory that only we may write to, with its parents.

    Raises:
        RequirementError: if it cannot be created, or another user could put files there that we would obey:
            by writing to it, or by replacing it or a directory above.
    """
    reason = untrusted_component(path.parent)
    if reason is not None:
        raise _not_private(path, reason)
    try:
        path.mkdir(mode=0o755, parents=True, exist_ok=True)
        status = path.stat()
    except OSError as error:
        raise RequirementError(
            f"{path} cannot be created: {reason_of(error)}",
            hint=f"run as root, or choose another directory with {STATE_VARIABLE}",
        ) from error
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise _not_private(path, f"other users may write to {path}")
    reason = untrusted_component(path)
    if reason is not None:
        raise _not_private(path, reason)
    return path


def _not_private(path: Path, reason: str) -> RequirementError:
    return RequirementError(
        f"other users could replace what blklab keeps in {path}: {reason}",
        hint=f"chown it to yourself and chmod go-w it, or choose another directory with {STATE_VARIABLE}"
        f" or {LOCK_VARIABLE}",
    )
