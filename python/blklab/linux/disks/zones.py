"""Zoned block devices: shingled disks and zoned flash, whose zones are written from their start on.

``queue/zoned`` has the model (Documentation/ABI/stable/sysfs-block). Host-managed disks refuse a write that
is not at its zone's write pointer; host-aware ones take it and are slow. Linux 6.8 dropped the latter model:
such disks have been ordinary ones since.
"""

from __future__ import annotations

import os
import platform
import re
import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from blklab.errors import JobFileError, SchedulerUnavailableError
from blklab.linux.disks.disk import SECTOR_BYTES, Disk, Roots
from blklab.linux.machine.kernel_files import text_or_empty
from blklab.quantities.formatting import count_of
from blklab.quantities.units import format_bytes
from blklab.spec.permits import Beside, require
from blklab.spec.workloads import Job, Workload

HOST_MANAGED, HOST_AWARE = "host-managed", "host-aware"
FIRST_WITH_ZONE_WRITE_PLUGGING = (6, 10)
"""The first release whose block layer itself keeps the order of writes within a zone (block/blk-zoned.c,
``disk_zone_wplug_…``). Until then mq-deadline did, the only scheduler with ``ELEVATOR_F_ZBD_SEQ_WRITE``
(block/mq-deadline.c), which sends one write at a time to a zone."""
_ORDERED_BEFORE = "mq-deadline"
_REPORT_ZONES = 0xC0101282
"""BLKREPORTZONE of linux/blkzoned.h."""
_REPORT_HEADER = struct.Struct("=QII")
_ZONE = struct.Struct("=QQQBB6xQ24x")
"""Start, length and write pointer in sectors, type and condition, capacity in sectors."""
_CONVENTIONAL = 1
_MOST_REPORTED = 4096


@dataclass(frozen=True)
class Zones:
    """The zones of a device."""

    model: str
    """``host-managed`` or ``host-aware``."""
    zone_bytes: int
    nr_zones: int
    max_open: int
    """Zones that may be written to at once; 0 is no limit."""
    max_active: int
    capacity_bytes: int | None = None
    """The part of a sequential zone that can be written, from its start on; None if unknown."""
    nr_conventional: int | None = None
    """Zones that may be written in any order; None if unknown."""

    @property
    def summary(self) -> str:
        """In words: ``host-managed zoned, 24 zones of 64.0 MiB (48.0 MiB of each usable)``."""
        size = f"{count_of(self.nr_zones, 'zone')} of {format_bytes(self.zone_bytes)}"
        if self.capacity_bytes is not None and self.capacity_bytes != self.zone_bytes:
            size += f" ({format_bytes(self.capacity_bytes)} of each usable)"
        conventional = f"{self.nr_conventional} of them conventional" if self.nr_conventional else ""
        limit = f"{self.max_open} open at most" if self.max_open else ""
        return ", ".join(filter(None, (f"{self.model} zoned", size, conventional, limit)))


def zones_of(folder: Path, node: Path | None = None) -> Zones | None:
    """The zones of a block device; None if it has none.

    Args:
        folder: Its directory in sysfs.
        node: Its device node, which tells a zone's capacity if we may open it.
    """
    whole = folder.parent if (folder / "partition").exists() else folder
    queue = whole / "queue"
    model = text_or_empty(queue / "zoned")
    if model not in (HOST_MANAGED, HOST_AWARE):
        return None
    zone_bytes = _number(queue / "chunk_sectors") * SECTOR_BYTES
    size_bytes = _number(whole / "size") * SECTOR_BYTES
    counted = -(-size_bytes // zone_bytes) if zone_bytes else 0
    reported = [] if node is None else _reported(node)
    sequential = [capacity for kind, capacity in reported if kind != _CONVENTIONAL]
    return Zones(
        model=model,
        zone_bytes=zone_bytes,
        nr_zones=_number(queue / "nr_zones") or counted,
        max_open=_number(queue / "max_open_zones"),
        max_active=_number(queue / "max_active_zones"),
        capacity_bytes=sequential[0] * SECTOR_BYTES if sequential and sequential[0] else None,
        nr_conventional=len(reported) - len(sequential) if reported else None,
    )


def zones_of_node(device: Path, roots: Roots | None = None) -> Zones | None:
    """The zones of a device node; None if it has none, or is no block device of this machine."""
    try:
        number = device.stat().st_rdev
    except OSError:
        return None
    folder = (roots or Roots()).sys / "dev" / "block" / f"{os.major(number)}:{os.minor(number)}"
    return zones_of(folder.resolve(), device)


def zoned_model(disk: Disk) -> str:
    """``host-managed``, ``host-aware``, or empty for a disk without zones."""
    model = text_or_empty(disk.sys_path / "queue" / "zoned")
    return model if model in (HOST_MANAGED, HOST_AWARE) else ""


def check_zones(
    disks: Sequence[Disk], device: Path | None, workloads: Sequence[Workload], schedulers: Sequence[str]
) -> None:
    """Refuses writes that zoned disks would not take, and schedulers that reorder writes to them.

    A file system writes its metadata whatever the load does, and a command may do anything.

    Args:
        disks: Beneath the target.
        device: The target; None for files.
        workloads: All loads.
        schedulers: Names of all that will be set.

    Raises:
        BlklabError: for the first one.
    """
    zones = None if device is None else zones_of_node(device)
    if device is not None and zones is not None:
        for workload in workloads:
            check_zoned_writes(workload, zones, device)
    writes = device is None or any(workload.writes or not workload.jobs for workload in workloads)
    for disk in disks:
        check_order(disk, schedulers, writes=writes)


def check_order(disk: Disk, schedulers: Sequence[str], *, writes: bool, release: str | None = None) -> None:
    """Refuses schedulers that may reorder writes within a zone of a host-managed disk.

    Args:
        disk: A disk beneath the target.
        schedulers: Names of all schedulers that will be set.
        writes: Whether the disk will be written to; reads have no order.
        release: The kernel's release; None for the running one.

    Raises:
        SchedulerUnavailableError: for the first such scheduler.
    """
    if not writes or zoned_model(disk) != HOST_MANAGED or _keeps_order(release or platform.release()):
        return
    for name in schedulers:
        if name != _ORDERED_BEFORE:
            raise SchedulerUnavailableError(
                f"{disk.name} is a host-managed zoned disk, and under {name} this kernel "
                f"({release or platform.release()}) may send the writes to a zone out of order, which such a "
                "disk refuses",
                hint=f"until Linux 6.9 only {_ORDERED_BEFORE} keeps their order; compare its tunables, load "
                "the disk with reads only, or use Linux 6.10 or newer, where the block layer keeps it",
            )


def check_zoned_writes(workload: Workload, zones: Zones, device: Path) -> None:
    """Refuses writes that a zoned device would not take.

    Raises:
        RefusedError: if a replay or a command would write to a host-managed device.
        JobFileError: if a job writes to one without ``zonemode=zbd`` or through the page cache, needs more
            open zones than there are, or is smaller than a zone.
    """
    if zones.model == HOST_MANAGED:
        require(workload, "host", beside=Beside.HOST_MANAGED, device=device)
    for job in workload.jobs:
        _check_job(workload, job, zones, device)


def _check_job(workload: Workload, job: Job, zones: Zones, device: Path) -> None:
    def refusal(option: str, message: str, hint: str) -> JobFileError:
        line = job.option_lines.get(option)
        return JobFileError(
            f"job {job.name}: {message}", source=workload.source, line=line, option=option, hint=hint
        )

    by_zone = job.options.get("zonemode") == "zbd"
    if job.writes and zones.model == HOST_MANAGED:
        if not by_zone:
            raise refusal(
                "readwrite",
                f"{device} is a host-managed zoned disk: it takes writes only at its zones' write pointers",
                "give the job zonemode=zbd and direct=1: fio then writes each zone from its start on",
            )
        if not job.direct:
            raise refusal(
                "direct", "writes with zonemode=zbd must not pass the page cache", "give the job direct=1"
            )
    if not by_zone:
        return
    limit = job.options.get("max_open_zones", "")
    if zones.max_open and limit.isdigit() and int(limit) > zones.max_open:
        raise refusal(
            "max_open_zones",
            f"max_open_zones={limit}, but {device} has {zones.max_open} at most",
            "leave it out: fio takes the disk's own limit",
        )
    if job.size_bytes is not None and job.size_bytes < zones.zone_bytes:
        raise refusal(
            "size",
            f"size={format_bytes(job.size_bytes)} is less than a zone of {device}, "
            f"{format_bytes(zones.zone_bytes)}",
            "give a multiple of the zone's size: fio leaves out the rest of a zone",
        )


def _keeps_order(release: str) -> bool:
    match = re.match(r"(\d+)\.(\d+)", release)
    return match is not None and (int(match[1]), int(match[2])) >= FIRST_WITH_ZONE_WRITE_PLUGGING


def _reported(node: Path) -> list[tuple[int, int]]:
    """Type and capacity (sectors) of the first zones; empty if the device cannot be asked."""
    if sys.platform != "linux":
        return []
    import fcntl  # noqa: PLC0415 - Windows has none

    answer = bytearray(_REPORT_HEADER.size + _MOST_REPORTED * _ZONE.size)
    _REPORT_HEADER.pack_into(answer, 0, 0, _MOST_REPORTED, 0)
    try:
        descriptor = os.open(node, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return []
    try:
        fcntl.ioctl(descriptor, _REPORT_ZONES, answer)
    except OSError:
        return []
    finally:
        os.close(descriptor)
    count = min(_REPORT_HEADER.unpack_from(answer)[1], _MOST_REPORTED)
    zones = _ZONE.iter_unpack(bytes(answer[_REPORT_HEADER.size :][: count * _ZONE.size]))
    return [(kind, capacity or length) for _, length, _, kind, _, capacity in zones]


def _number(path: Path) -> int:
    text = text_or_empty(path)
    return int(text) if text.isdigit() else 0
