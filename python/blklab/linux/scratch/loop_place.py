"""Directories for scratch files of loop devices: on a disk, or in memory if that was asked for."""

from __future__ import annotations

from pathlib import Path

from blklab.errors import RefusedError, RequirementError
from blklab.linux.directories.mounts import Mount, mount_of
from blklab.linux.disks.loop import IN_MEMORY

DEFAULT_SCRATCH_FOLDER = Path("/var/tmp")  # noqa: S108 - our files there are in a directory of mode 700
"""Directory for loop devices' scratch files: on disk, unlike /tmp on many systems."""
_OF_DEVICES = "devtmpfs"


def memory_beneath(folder: Path, proc: Path = Path("/proc")) -> str | None:
    """The kind of a file system in memory that a directory is on; None if it is on another one."""
    mount = mount_of(folder, proc)
    return mount.filesystem if mount is not None and mount.filesystem in IN_MEMORY else None


def check_loop_place(folder: Path, *, named: bool, proc: Path = Path("/proc")) -> None:
    """Makes sure that a loop device over a file in a directory measures what was asked for.

    Args:
        folder: The directory.
        named: Whether the target names it: memory is measured only if it was asked for.
        proc: The mount point of procfs.

    Raises:
        RefusedError: for the directory of device nodes.
        RequirementError: for memory that was not asked for.
    """
    mount = mount_of(folder, proc)
    if folder.resolve() == Path("/dev") or (mount is not None and mount.filesystem == _OF_DEVICES):
        raise RefusedError(
            f"{folder} is for device nodes, and in memory: a scratch file there measures no disk",
            hint="name a directory on a disk (loop:1g,dir=/var/tmp), or /dev/shm to measure memory",
        )
    memory = memory_beneath(folder, proc)
    if memory is not None and not named:
        raise RequirementError(
            f"{folder} is in memory ({memory}): a scratch file there measures no disk",
            hint="name a directory on a disk (loop:1g,dir=PATH); dir=/dev/shm measures memory on purpose",
        )


def user_behind(mount: Mount | None) -> int | None:
    """The user whose program serves a file system (FUSE); None if it is root's or the kernel's own."""
    if mount is None or not mount.filesystem.startswith("fuse"):
        return None
    user = mount.super_option("user_id")
    return int(user) if user is not None and user.isdecimal() and int(user) else None
