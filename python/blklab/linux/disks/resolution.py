"""From a path to the disks beneath it: through mounts, then down the stack of block devices."""

from __future__ import annotations

import os
import stat
import sys
from dataclasses import dataclass
from pathlib import Path

from blklab.errors import RequirementError, UnknownNameError, UsageError, reason_of
from blklab.linux.directories.mounts import mount_of
from blklab.linux.disks.disk import Disk, Roots
from blklab.linux.disks.mounted_devices import devices_of_mount, folder_of_number
from blklab.linux.disks.stack import leaves_below
from blklab.spec.atlas import find_drive
from blklab.spec.profiles import shipped_profiles


@dataclass(frozen=True)
class Resolution:
    """A path, and the devices beneath it."""

    path: str
    kind: str
    """``directory``, ``file`` or ``block``."""
    mount_point: str | None
    filesystem: str | None
    mount_options: str | None
    source: str
    """The device that the file system is on, or the block device itself."""
    stack: list[str]
    """All devices from the mount down to the leaves, for people."""
    leaves: list[Disk]


def resolve(path: str, roots: Roots | None = None) -> Resolution:
    """Finds the disks beneath a directory, a file or a block device.

    Raises:
        UsageError: if the path is empty.
        UnknownNameError: if there is no such path, or it is none of the three.
        RequirementError: if no disk with a scheduler is beneath it (memory, network …).
    """
    if sys.platform != "linux":
        raise RequirementError(
            "the disk beneath a path can be found only on Linux", hint="use sim:ssd-sata instead"
        )
    if not path.strip():
        # To the system the empty path is the current directory, and an unset variable expands to it.
        raise UsageError("no path is named", hint="write . for the current directory")
    roots = roots or Roots()
    try:
        status = Path(path).stat()
    except OSError as error:
        hint = _hint_of_missing(path) if isinstance(error, FileNotFoundError) else None
        raise UnknownNameError(f"target {path}: {reason_of(error)}", hint=hint) from error
    except ValueError as error:  # a NUL byte
        raise UnknownNameError(f"target {path!r}: {error}") from error
    if stat.S_ISBLK(status.st_mode):
        number = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
        stack, leaves = leaves_below([folder_of_number(number, path, roots)], roots)
        return Resolution(path, "block", None, None, None, os.path.realpath(path), stack, leaves)
    if not (stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)):
        raise UnknownNameError(f"target {path} is neither a directory, a file nor a block device")
    mount = mount_of(Path(path), roots.proc)
    if mount is None:
        raise RequirementError(f"cannot tell which file system {path} is on", hint="is /proc mounted?")
    kind = "directory" if stat.S_ISDIR(status.st_mode) else "file"
    folders = devices_of_mount(mount, path, roots)
    stack, leaves = leaves_below(folders, roots)
    source = mount.source
    if len(folders) == 1 and not Path(source).exists():  # /dev/root and the like do not exist
        source = f"/dev/{folders[0].name}"
    stack = [f"{mount.filesystem} on {mount.mount_point}", *stack]
    return Resolution(
        path, kind, mount.mount_point, mount.filesystem, mount.all_options, source, stack, leaves
    )


def _hint_of_missing(path: str) -> str:
    """Advice for a path that does not exist, which may be the name of a modelled device."""
    if "/" not in path and (device := Path("/dev", path)).is_block_device():
        return f"did you mean {device}?"
    if path in shipped_profiles():
        return f"did you mean sim:{path}?"
    if (drive := find_drive(path)) is not None:
        return f"did you mean 'sim:{drive.model}'?"
    return "`blklab targets` lists what this machine has"
