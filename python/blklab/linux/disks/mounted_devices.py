"""The block devices that a mounted file system is on."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from blklab.errors import RequirementError
from blklab.linux.directories.mounts import Mount, mount_of
from blklab.linux.disks.btrfs import member_names
from blklab.linux.disks.disk import Roots
from blklab.linux.disks.stack import OTHER_TARGETS

_MEMORY = {
    "tmpfs",
    "ramfs",
    "devtmpfs",
    "hugetlbfs",
    "proc",
    "sysfs",
    "cgroup",
    "cgroup2",
    "securityfs",
    "debugfs",
}
_REMOTE = {
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "9p",
    "virtiofs",
    "ceph",
    "afs",
    "glusterfs",
    "lustre",
    "fuse.sshfs",
}


def folder_of_number(number: str, path: str, roots: Roots) -> Path:
    """The sysfs directory of a device number; the path is for messages.

    Raises:
        RequirementError: if the kernel has no such block device.
    """
    link = roots.sys / "dev" / "block" / number
    if not link.exists():
        raise RequirementError(f"the kernel has no block device {number} for {path}")
    return link.resolve()


def devices_of_mount(mount: Mount, path: str, roots: Roots) -> list[Path]:
    """The sysfs directories of the devices that a mounted file system is on.

    Raises:
        RequirementError: if it is on no disk of this machine, or its disks cannot be found.
    """
    kind = mount.filesystem
    if kind == "overlay":
        return _folders_of_overlay(mount, path, roots)
    if kind in _MEMORY:
        raise RequirementError(f"{path} is on {kind}, which is memory, not a disk", hint=OTHER_TARGETS)
    if kind in _REMOTE:
        raise RequirementError(
            f"{path} is on {kind} ({mount.source}): its disks belong to another machine", hint=OTHER_TARGETS
        )
    if kind == "btrfs":
        return _folders_of_btrfs(mount, path, roots)
    if kind == "zfs":
        raise RequirementError(
            f"{path} is on zfs, and blklab cannot tell which disks a pool is on",
            hint="name a disk or another directory",
        )
    if not mount.device_number.startswith("0:"):
        devices = [folder_of_number(mount.device_number, path, roots)]
    else:  # bcachefs lists its members like this: /dev/a:/dev/b
        devices = [folder for part in mount.source.split(":") if (folder := _folder_of_node(part, roots))]
    if not devices:
        raise RequirementError(
            f"{path} is on {kind} ({mount.source}), and blklab cannot tell which disk that is on",
            hint=OTHER_TARGETS,
        )
    # An external log or real-time device (xfs) takes part in every write.
    for option in ("logdev", "rtdev"):
        extra = _folder_of_node(mount.super_option(option) or "", roots)
        if extra is not None and extra not in devices:
            devices.append(extra)
    return devices


def _folders_of_overlay(mount: Mount, path: str, roots: Roots) -> list[Path]:
    upper = mount.super_option("upperdir")
    if upper is None:
        raise RequirementError(f"{path} is on an overlay without an upper directory, which is read-only")
    if not Path(upper).is_absolute() or not Path(upper).is_dir():
        raise RequirementError(
            f"{path} is on an overlay whose upper directory {upper} is not visible from here",
            hint="in a container: name a volume that is a directory on a disk",
        )
    below = mount_of(Path(upper), roots.proc)
    if below is None or below == mount:
        raise RequirementError(
            f"{path} is on an overlay whose upper directory {upper} is on no known file system"
        )
    return devices_of_mount(below, upper, roots)


def _folders_of_btrfs(mount: Mount, path: str, roots: Roots) -> list[Path]:
    source = _folder_of_node(mount.source, roots)
    names = member_names(Path(path), source.name if source else None, roots.sys)
    folders = [(roots.sys / "class" / "block" / name).resolve() for name in names]
    folders = [folder for folder in folders if folder.is_dir()] or ([source] if source else [])
    if not folders:
        raise RequirementError(f"the member devices of the btrfs under {path} cannot be found")
    return folders


def _folder_of_node(node: str, roots: Roots) -> Path | None:
    if not node.startswith("/"):
        return None
    try:
        status = Path(node).stat()
    except OSError:
        return None
    link = roots.sys / "dev" / "block" / f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
    return link.resolve() if stat.S_ISBLK(status.st_mode) and link.exists() else None
