"""Disks that the kernel has given up: it fails each of their I/Os at once.

A SCSI disk goes offline when resets do not help (``scsi_eh_offline_sdevs`` in
drivers/scsi/scsi_error.c), and an NVMe controller is dead when it cannot be started again
(``nvme_mark_namespaces_dead`` in drivers/nvme/host/core.c).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from blklab.errors import RequirementError
from blklab.linux.disks.disk import Disk
from blklab.linux.machine.kernel_files import text_or_empty

_GIVEN_UP = {"offline", "transport-offline", "dead"}
"""Values of ``device/state`` (drivers/scsi/scsi_sysfs.c, drivers/nvme/host/sysfs.c of Linux 6.12)."""


def why_offline(disk: Path) -> str | None:
    """A sentence on the disk's state if the kernel has given it up, else None.

    Args:
        disk: The disk's directory in sysfs.
    """
    state = text_or_empty(disk / "device" / "state")
    if state not in _GIVEN_UP:
        return None
    return f"{disk.name} is {state}: the kernel has given it up and fails all its I/O"


def require_online(disks: Iterable[Disk]) -> None:
    """Refuses disks that the kernel has given up.

    Raises:
        RequirementError: if one is; the hint says how it comes back.
    """
    for disk in disks:
        reason = why_offline(disk.sys_path)
        if reason is not None:
            raise RequirementError(reason, hint=way_back(disk.sys_path))


def way_back(disk: Path) -> str:
    """Advice on a disk that the kernel has given up.

    Args:
        disk: The disk's directory in sysfs.
    """
    if text_or_empty(disk / "device" / "state") == "dead":
        return "`dmesg` has the cause; the drive comes back with a reset or after a restart, if it is sound"
    return (
        "`dmesg` has the cause; when that is mended, "
        f"`echo running > /sys/block/{disk.name}/device/state` lets it work again"
    )
