"""Disks that the kernel has given up; see `blklab.linux.disks.offline`."""

from __future__ import annotations

from blklab.linux.disks.disk import Roots
from blklab.linux.disks.offline import way_back, why_offline
from blklab.linux.disks.stack import all_disks
from blklab.linux.doctor.finding import Finding


def check(roots: Roots | None = None) -> list[Finding]:
    """Looks at the state of all disks."""
    return [
        Finding("disk", "lacking", reason, way_back(disk.sys_path))
        for disk in all_disks(roots)
        if (reason := why_offline(disk.sys_path)) is not None
    ]
