"""Stacked block devices: from partitions, device-mapper, md and NVMe multipath down to the leaves.

A leaf is the block device whose scheduler orders the requests: the whole disk, with three exceptions. A loop
device is a leaf (its own scheduler is under test, whatever its file is on). A request-based device-mapper
target (multipath) is a leaf, because it hands finished requests past the schedulers of its paths. An NVMe
multipath head is not a leaf: its hidden paths are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from blklab.errors import RequirementError
from blklab.linux.disks.disk import Disk, Roots, has_scheduler, read_disk
from blklab.linux.machine.kernel_files import text_or_empty

OTHER_TARGETS = "name a directory on a disk, a block device, or loop:1g"
"""Hint for targets without a disk."""

_NVME_HEAD = re.compile(r"nvme(\d+)n(\d+)")


def all_disks(roots: Roots | None = None) -> list[Disk]:
    """The whole disks of this machine that can hold data, sorted by name.

    Leaves out stacked devices (device-mapper, md), memory (zram) and empty loop devices. Of NVMe multipath it
    lists the heads, not the hidden paths. Without sysfs the list is empty.
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
    """The leaves of a whole disk: the disk itself, or the paths of an NVMe multipath head.

    Raises:
        RequirementError: if none of them has a scheduler.
    """
    return leaves_below([disk.sys_path], roots or Roots())[1]


def leaves_below(folders: list[Path], roots: Roots) -> tuple[list[str], list[Disk]]:
    """Walks down to the leaves; lists each device once, in the order of the walk."""
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
        raise RequirementError(f"{folder.name} is memory, not a disk", hint=OTHER_TARGETS)
    if not disk.size_bytes:
        detail = "no file is attached to it" if folder.name.startswith("loop") else "it has no medium"
        raise RequirementError(f"{folder.name} is empty: {detail}")
    if not has_scheduler(folder):
        raise RequirementError(
            f"{folder.name} has no I/O scheduler: its driver takes bios in order of arrival",
            hint=OTHER_TARGETS,
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
    """The hidden path devices of an NVMe multipath head: nvme0n1 has nvme0c0n1, nvme0c1n1 and so on."""
    head = _NVME_HEAD.fullmatch(folder.name)
    if head is None:
        return []
    found = (roots.sys / "block").glob(f"nvme{head[1]}c*n{head[2]}")
    return [path.resolve() for path in sorted(found, key=lambda path: _natural(path.name))]


def _natural(name: str) -> list[tuple[int, str]]:
    """A sort key that puts loop10 after loop9."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]
