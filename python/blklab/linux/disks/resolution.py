"""From a path to the disks beneath it: through mounts, partitions, device-mapper, md, btrfs, NVMe multipath.

A leaf is the block device whose scheduler orders the requests. That is the whole disk, with these
exceptions: a loop device is a leaf itself (its scheduler is what a test of it is about, whatever its file
lies on), a request-based device-mapper target (multipath) is one, since it hands finished requests past the
schedulers of its paths, and an NVMe multipath head is none: its hidden paths are the leaves.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from blklab.errors import RequirementError, UnknownNameError, reason_of
from blklab.linux.disks.btrfs import member_names
from blklab.linux.disks.mounts import Mount, mount_of
from blklab.linux.machine.kernel_files import text_or_empty

SECTOR_BYTES = 512
"""Unit of ``size`` in sysfs, whatever the device's own sector size is."""

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
_DRIVERS = {"virtio_blk": "virtio disk", "vbd": "Xen disk", "xen_blkfront": "Xen disk"}
"""Disks of virtual machines that have no model, by their driver."""
_NVME_HEAD = re.compile(r"nvme(\d+)n(\d+)")


@dataclass(frozen=True)
class Roots:
    """Where the kernel's trees are; others than the real ones serve tests."""

    sys: Path = Path("/sys")
    proc: Path = Path("/proc")
    dev: Path = Path("/dev")


@dataclass(frozen=True)
class Disk:
    """A whole disk, or another block device with a scheduler of its own."""

    name: str
    device_number: str
    """``254:0``; empty for a hidden path of an NVMe multipath device, which has no number."""
    sys_path: Path
    """Its folder in sysfs, symbolic links resolved."""
    dev_path: Path
    """Its node; for a hidden path the node of the device it belongs to."""
    model: str
    serial: str
    wwid: str
    size_bytes: int
    rotational: bool | None
    diskseq: str = ""
    """Counts up with every disk (or medium, or loop attachment) since boot; empty before Linux 5.15."""

    @property
    def key(self) -> str:
        """Tells the disk apart from all others of the running machine."""
        return self.device_number or self.name


@dataclass(frozen=True)
class Resolution:
    """What lies under a path."""

    path: str
    kind: str
    """``directory``, ``file`` or ``block``."""
    mount_point: str | None
    filesystem: str | None
    mount_options: str | None
    source: str
    """What the file system is on, or the block device itself."""
    stack: list[str]
    """The devices passed on the way down, for people."""
    leaves: list[Disk]


def resolve(path: str, roots: Roots | None = None) -> Resolution:
    """Finds the disks beneath a directory, a file or a block device.

    Raises:
        UnknownNameError: if there is no such path, or it is neither of the three.
        RequirementError: if no disk with a scheduler lies beneath it (memory, network …).
    """
    if sys.platform != "linux":
        raise RequirementError(
            "only Linux tells which disk lies beneath a path", hint="use sim:ssd-sata instead"
        )
    roots = roots or Roots()
    try:
        status = Path(path).stat()
    except OSError as error:
        hint = (
            "`blklab targets` lists what this machine has" if isinstance(error, FileNotFoundError) else None
        )
        raise UnknownNameError(f"target {path}: {reason_of(error)}", hint=hint) from error
    except ValueError as error:  # a NUL byte
        raise UnknownNameError(f"target {path!r}: {error}") from error
    if stat.S_ISBLK(status.st_mode):
        number = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
        stack, leaves = _descend([_folder_of_number(number, path, roots)], roots)
        return Resolution(path, "block", None, None, None, os.path.realpath(path), stack, leaves)
    if not (stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)):
        raise UnknownNameError(f"target {path} is neither a directory, a file nor a block device")
    mount = mount_of(Path(path), roots.proc)
    if mount is None:
        raise RequirementError(f"cannot find out which file system {path} is on", hint="is /proc mounted?")
    kind = "directory" if stat.S_ISDIR(status.st_mode) else "file"
    folders = _folders_of_mount(mount, path, roots)
    stack, leaves = _descend(folders, roots)
    source = mount.source
    if len(folders) == 1 and not Path(source).exists():  # /dev/root and the like name nothing
        source = f"/dev/{folders[0].name}"
    stack = [f"{mount.filesystem} on {mount.mount_point}", *stack]
    return Resolution(
        path, kind, mount.mount_point, mount.filesystem, mount.all_options, source, stack, leaves
    )


def all_disks(roots: Roots | None = None) -> list[Disk]:
    """The whole disks of this machine that can hold data, by name.

    Without what is stacked upon others (device-mapper, md), without memory (zram) and empty loop devices;
    of NVMe multipath the heads, not the hidden paths. Empty where there is no sysfs.
    """
    roots = roots or Roots()
    disks = []
    for entry in sorted((roots.sys / "block").glob("*"), key=lambda entry: _natural(entry.name)):
        folder = entry.resolve()
        if text_or_empty(folder / "hidden") == "1" or entry.name.startswith(("zram", "ram")):
            continue
        disk = read_disk(folder, roots)
        if disk.size_bytes and not (_slaves(folder) and not has_scheduler(folder)):
            disks.append(disk)
    return disks


def leaves_of(disk: Disk, roots: Roots | None = None) -> list[Disk]:
    """The leaves of one whole disk: itself, or the paths of an NVMe multipath head.

    Raises:
        RequirementError: if nothing there has a scheduler.
    """
    return _descend([disk.sys_path], roots or Roots())[1]


def read_disk(folder: Path, roots: Roots | None = None, *, node: Path | None = None) -> Disk:
    """Describes the block device of a sysfs folder; what the kernel does not tell is left empty."""
    roots = roots or Roots()
    loop = (folder / "loop").is_dir() or folder.name.startswith("loop")
    size = text_or_empty(folder / "size")
    rotational = text_or_empty(folder / "queue" / "rotational")
    return Disk(
        name=folder.name,
        device_number=text_or_empty(folder / "dev"),
        sys_path=folder,
        dev_path=node or roots.dev / folder.name.replace("!", "/"),
        model="loop device" if loop else _model(folder),
        serial=_serial(folder),
        wwid=text_or_empty(folder / "wwid")
        or text_or_empty(folder / "device" / "wwid")
        or text_or_empty(folder / "dm" / "uuid"),
        size_bytes=int(size) * SECTOR_BYTES if size.isdigit() else 0,
        rotational={"0": False, "1": True}.get(rotational),
        diskseq=text_or_empty(folder / "diskseq"),
    )


def has_scheduler(folder: Path) -> bool:
    """Whether the device of a sysfs folder orders its requests itself (one that takes bios does not)."""
    return "[" in text_or_empty(folder / "queue" / "scheduler")


def _model(folder: Path) -> str:
    named = text_or_empty(folder / "device" / "model") or text_or_empty(folder / "device" / "name")
    driver = folder / "device" / "driver"
    return named or (_DRIVERS.get(driver.resolve().name, "") if driver.exists() else "")


def _serial(folder: Path) -> str:
    plain = text_or_empty(folder / "serial") or text_or_empty(folder / "device" / "serial")
    if plain:
        return plain
    try:
        page = (
            folder / "device" / "vpd_pg80"
        ).read_bytes()  # SCSI: unit serial number page, 4 bytes of header
    except OSError:
        return ""
    return page[4:].decode("ascii", errors="replace").strip("\0 ")


def _folder_of_number(number: str, path: str, roots: Roots) -> Path:
    link = roots.sys / "dev" / "block" / number
    if not link.exists():
        raise RequirementError(f"the kernel knows no block device {number}, which {path} stands for")
    return link.resolve()


def _folders_of_mount(mount: Mount, path: str, roots: Roots) -> list[Path]:
    """The sysfs folders of the devices that a mounted file system is on."""
    kind = mount.filesystem
    if kind == "overlay":
        return _folders_of_overlay(mount, path, roots)
    if kind in _MEMORY:
        raise RequirementError(
            f"{path} is on {kind}, which is memory: there is no disk beneath", hint=_OTHER_PLACE
        )
    if kind in _REMOTE:
        raise RequirementError(
            f"{path} is on {kind} ({mount.source}): its disks belong to another machine", hint=_OTHER_PLACE
        )
    if kind == "btrfs":
        return _folders_of_btrfs(mount, path, roots)
    if kind == "zfs":
        raise RequirementError(
            f"{path} is on zfs, whose pools blklab cannot take apart", hint="name a disk or another directory"
        )
    if not mount.device_number.startswith("0:"):
        devices = [_folder_of_number(mount.device_number, path, roots)]
    else:  # bcachefs names its members so: /dev/a:/dev/b
        devices = [folder for part in mount.source.split(":") if (folder := _folder_of_node(part, roots))]
    if not devices:
        raise RequirementError(
            f"{path} is on {kind} ({mount.source}), beneath which no disk is known", hint=_OTHER_PLACE
        )
    # A log or real-time section elsewhere (xfs) takes part in every write.
    for option in ("logdev", "rtdev"):
        extra = _folder_of_node(mount.super_option(option) or "", roots)
        if extra is not None and extra not in devices:
            devices.append(extra)
    return devices


_OTHER_PLACE = "name a directory on a disk, a block device, or loop:1g"


def _folders_of_overlay(mount: Mount, path: str, roots: Roots) -> list[Path]:
    upper = mount.super_option("upperdir")
    if upper is None:
        raise RequirementError(f"{path} is on an overlay without an upper directory: it takes no writes")
    if not Path(upper).is_absolute() or not Path(upper).is_dir():
        raise RequirementError(
            f"{path} is on an overlay whose upper directory {upper} cannot be seen from here",
            hint="in a container: name a volume that is a directory on a disk",
        )
    below = mount_of(Path(upper), roots.proc)
    if below is None or below == mount:
        raise RequirementError(
            f"{path} is on an overlay whose upper directory {upper} is on no known file system"
        )
    return _folders_of_mount(below, upper, roots)


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


def _descend(folders: list[Path], roots: Roots) -> tuple[list[str], list[Disk]]:
    """Walks down to the leaves; each device once, in the order in which it is met."""
    stack: dict[str, None] = {}
    leaves: dict[str, Disk] = {}
    for folder in folders:
        for label, leaf in _walk(folder, roots):
            stack[label] = None
            if leaf is not None:
                leaves[leaf.key] = leaf
    return list(stack), list(leaves.values())


def _walk(folder: Path, roots: Roots) -> Iterator[tuple[str, Disk | None]]:
    name = folder.name
    if (folder / "partition").exists():
        yield f"{name} (partition)", None
        yield from _walk(folder.parent, roots)
        return
    below = _slaves(folder)
    if below and not has_scheduler(folder):
        yield f"{name} ({_stacked_kind(folder)})", None
        for slave in below:
            yield from _walk(slave, roots)
        return
    paths = _nvme_paths(folder, roots)
    if paths:
        yield f"{name} (NVMe multipath)", None
        for hidden in paths:
            yield hidden.name, _checked_leaf(hidden, roots, node=roots.dev / name)
        return
    yield name, _checked_leaf(folder, roots)


def _checked_leaf(folder: Path, roots: Roots, *, node: Path | None = None) -> Disk:
    disk = read_disk(folder, roots, node=node)
    if folder.name.startswith(("zram", "ram")):
        raise RequirementError(f"{folder.name} is memory: there is no disk beneath", hint=_OTHER_PLACE)
    if not disk.size_bytes:
        detail = "no file is attached to it" if folder.name.startswith("loop") else "there is no medium in it"
        raise RequirementError(f"{folder.name} is empty: {detail}")
    if not has_scheduler(folder):
        raise RequirementError(
            f"{folder.name} has no I/O scheduler: its driver takes requests as they come", hint=_OTHER_PLACE
        )
    return disk


def _stacked_kind(folder: Path) -> str:
    if (folder / "dm").is_dir():
        subsystem = text_or_empty(folder / "dm" / "uuid").partition("-")[0].lower()
        kind = {"lvm": "LVM", "crypt": "encrypted", "mpath": "multipath"}.get(subsystem, "device-mapper")
        return f"{kind} {text_or_empty(folder / 'dm' / 'name')}".strip()
    if (folder / "md").is_dir():
        return f"md {text_or_empty(folder / 'md' / 'level')}".strip()
    return "stacked"


def _slaves(folder: Path) -> list[Path]:
    links = sorted((folder / "slaves").glob("*"), key=lambda link: _natural(link.name))
    return [link.resolve() for link in links]


def _nvme_paths(folder: Path, roots: Roots) -> list[Path]:
    """The hidden path devices of an NVMe namespace: nvme0n1 has nvme0c0n1, nvme0c1n1 and so on."""
    head = _NVME_HEAD.fullmatch(folder.name)
    if head is None:
        return []
    found = (roots.sys / "block").glob(f"nvme{head[1]}c*n{head[2]}")
    return [path.resolve() for path in sorted(found, key=lambda path: _natural(path.name))]


def _natural(name: str) -> list[tuple[int, str]]:
    """Sort key that puts loop10 after loop9."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]
