"""Unmounting a file system that blklab mounted."""

from __future__ import annotations

import time
from pathlib import Path

from blklab.errors import RequirementError
from blklab.linux.directories.mounts import read_mounts
from blklab.linux.processes.programs import run_program

_ATTEMPTS = 150
_PAUSE_SECONDS = 0.2
"""Half a minute together: killed processes hold it until their I/O has completed."""


def unmount(mount_point: Path) -> bool:
    """Unmounts a mount point of ours, once processes that are about to end have done so.

    Returns:
        Whether anything was mounted there.

    Raises:
        RequirementError: if it is still in use.
    """
    for attempt in range(_ATTEMPTS):
        if not any(Path(mount.mount_point) == mount_point for mount in read_mounts(Path("/proc"))):
            return bool(attempt)
        try:
            run_program(["umount", str(mount_point)], package="mount")
        except RequirementError:
            if attempt == _ATTEMPTS - 1:
                raise
            time.sleep(_PAUSE_SECONDS)
        else:
            return True
    return True
