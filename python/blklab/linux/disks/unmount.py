"""Unmounting a file system that blklab mounted."""

from __future__ import annotations

from pathlib import Path

from blklab.linux.disks.mounts import read_mounts
from blklab.linux.processes.programs import run_program


def unmount(mount_point: Path) -> bool:
    """Unmounts a mount point of ours.

    Returns:
        Whether anything was mounted there.

    Raises:
        RequirementError: if it is still in use.
    """
    if not any(Path(mount.mount_point) == mount_point for mount in read_mounts(Path("/proc"))):
        return False
    run_program(["umount", str(mount_point)], package="mount")
    return True
