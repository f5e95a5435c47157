"""The files of a disk's queue in sysfs: names, paths, reading, and the errors that all of them share.

Names: ``scheduler``, ``nr_requests`` (queue/nr_requests), ``iosched/slice_idle`` (queue/iosched/slice_idle).
Values are the kernel's text without the final newline.
"""

from __future__ import annotations

import errno
import re
import stat
from pathlib import Path

from blklab.errors import DeviceVanishedError, NotRootError, TunableError, reason_of
from blklab.linux.disks.disk import Disk

SCHEDULER = "scheduler"
TUNABLE_PREFIX = "iosched/"


def queue_folder(disk: Disk) -> Path:
    """The ``queue`` directory of a disk."""
    return disk.sys_path / "queue"


def attribute_path(disk: Disk, name: str) -> Path:
    """The file of an attribute.

    Raises:
        TunableError: if the name cannot be an attribute's.
    """
    if re.fullmatch(r"(?:iosched/)?[a-z0-9_]+", name) is None:
        raise TunableError(f"{name!r} is not the name of a queue attribute")
    return queue_folder(disk) / name


def read_text(path: Path) -> str:
    """The content of a file without its final newline."""
    return path.read_text(encoding="ascii", errors="surrogateescape").removesuffix("\n")


def writable_names(disk: Disk) -> list[str]:
    """Names of all attributes and tunables that are readable and writable, in no order."""
    names = []
    for path in [*queue_folder(disk).glob("*"), *(queue_folder(disk) / "iosched").glob("*")]:
        try:
            mode = path.stat().st_mode
        except OSError:
            continue
        if stat.S_ISREG(mode) and mode & stat.S_IRUSR and mode & stat.S_IWUSR and path.name != SCHEDULER:
            prefix = TUNABLE_PREFIX if path.parent.name == "iosched" else ""
            names.append(prefix + path.name)
    return names


def raise_if_not_about_value(disk: Disk, name: str, error: OSError) -> None:
    """Raises if a write failed for another reason than its value: no permission, or no disk."""
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        raise NotRootError(
            f"{disk.name}: no permission to write {name}: {reason_of(error)}",
            hint="run as root, outside of containers that mount /sys read-only",
        ) from error
    if not queue_folder(disk).is_dir() or error.errno in (errno.ENODEV, errno.ENXIO):
        raise vanished(disk) from error


def vanished(disk: Disk) -> DeviceVanishedError:
    """The error for a disk that is gone."""
    return DeviceVanishedError(f"the disk {disk.name} ({disk.model or disk.dev_path}) is gone")
