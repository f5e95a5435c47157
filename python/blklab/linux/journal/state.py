"""Where blklab keeps what must outlive a run: journals, locks, what `apply` changed."""

from __future__ import annotations

import os
from pathlib import Path

from blklab.errors import RequirementError, reason_of

STATE_VARIABLE = "BLKLAB_STATE_DIR"
LOCK_VARIABLE = "BLKLAB_LOCK_DIR"
_DEFAULT_STATE = Path("/var/lib/blklab")
_DEFAULT_LOCKS = Path("/run/lock/blklab")


def state_directory() -> Path:
    """The folder of journals: ``$BLKLAB_STATE_DIR``, else /var/lib/blklab. It need not exist."""
    chosen = os.environ.get(STATE_VARIABLE)
    return Path(chosen).absolute() if chosen else _DEFAULT_STATE


def lock_directory() -> Path:
    """The folder of disk locks: ``$BLKLAB_LOCK_DIR``, else /run/lock/blklab.

    The same for runs with different state directories, since they would fight over the same disks.
    """
    chosen = os.environ.get(LOCK_VARIABLE)
    return Path(chosen).absolute() if chosen else _DEFAULT_LOCKS


def make_private_directory(path: Path) -> Path:
    """Creates a folder that only we may change, with its parents.

    Raises:
        RequirementError: if it cannot be created, or belongs to somebody else, whose files must not steer us.
    """
    try:
        path.mkdir(mode=0o755, parents=True, exist_ok=True)
        status = path.stat()
    except OSError as error:
        raise RequirementError(
            f"{path} cannot be created: {reason_of(error)}",
            hint=f"run it as root, or choose another place with {STATE_VARIABLE}",
        ) from error
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise RequirementError(
            f"{path} can be changed by other users", hint=f"chown it to yourself and chmod go-w {path}"
        )
    return path
