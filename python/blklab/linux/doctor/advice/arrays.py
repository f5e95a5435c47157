"""Arrays that lack a member or rebuild one; see `blklab.linux.disks.arrays`."""

from __future__ import annotations

from blklab.linux.disks.arrays import array_troubles
from blklab.linux.disks.disk import Roots
from blklab.linux.disks.stack import all_disks
from blklab.linux.doctor.finding import Finding


def check(roots: Roots | None = None) -> list[Finding]:
    """Looks at the arrays on all disks."""
    troubles = array_troubles([disk.sys_path for disk in all_disks(roots)], roots)
    return [
        Finding("array", "lacking", text, "what is measured now is not what the whole array does")
        for text in troubles
    ]
