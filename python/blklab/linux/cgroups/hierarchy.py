"""The cgroup hierarchy that controls I/O on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from blklab.errors import RequirementError
from blklab.linux.directories.mounts import parse_mountinfo
from blklab.linux.machine.kernel_files import text_or_empty


@dataclass(frozen=True)
class Hierarchy:
    """The hierarchy with the I/O controller."""

    version: int
    """1 (blkio) or 2 (io)."""
    root: Path
    """Its mount point."""


_OF_CHILDREN = frozenset({"io.max", "io.weight", "io.bfq.weight"})
_BFQ_WEIGHT_OF_V1 = "blkio.bfq.weight"
_OF_COST = frozenset({"io.weight", "io.cost.qos", "io.cost.model"})


def offered_attributes(hierarchy: Hierarchy) -> frozenset[str]:
    """The I/O controller's attributes that groups have, and those of the root.

    A group shows its own. Where no group has the controller yet, those that this kernel may have count.
    """
    root = hierarchy.root
    of_root = _files(root)
    children = [_files(child) for child in root.iterdir() if child.is_dir()]
    found = of_root.union(*children)
    if any(children):
        return found
    if hierarchy.version == 1:
        # The root has bfq's accounts but no weight.
        has_bfq = any(name.startswith("blkio.bfq.") for name in of_root)
        return found | {_BFQ_WEIGHT_OF_V1} if has_bfq else found
    return found | (_OF_CHILDREN if "io.cost.qos" in of_root else _OF_CHILDREN - _OF_COST)


def _files(folder: Path) -> frozenset[str]:
    return frozenset(path.name for path in folder.glob("*") if path.name.startswith(("io.", "blkio.")))


def find_hierarchy(proc: Path = Path("/proc")) -> Hierarchy:
    """Finds the hierarchy with the I/O controller.

    Raises:
        RequirementError: if none is mounted.
    """
    try:
        mounts = parse_mountinfo((proc / "self" / "mountinfo").read_text())
    except OSError:
        mounts = []
    for mount in mounts:
        if mount.filesystem == "cgroup" and "blkio" in mount.super_options.split(","):
            return Hierarchy(1, Path(mount.mount_point))
    for mount in mounts:
        root = Path(mount.mount_point)
        if mount.filesystem == "cgroup2" and "io" in text_or_empty(root / "cgroup.controllers").split():
            return Hierarchy(2, root)
    raise RequirementError(
        "no control group hierarchy with the I/O controller is mounted",
        hint="mount one: mount -t cgroup2 none /sys/fs/cgroup",
    )
