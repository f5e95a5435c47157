"""The blocks of a block device that exists already."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from blklab.errors import DeviceVanishedError, RefusedError, RequirementError, reason_of
from blklab.linux.disks.device_in_use import check_writable_device
from blklab.linux.disks.partitions import partition_path
from blklab.linux.disks.zones import zones_of_node
from blklab.linux.scratch.layout import EXTENT_ALIGNMENT_BYTES, JobRegions, regions_on_device
from blklab.linux.scratch.parts import add_parts, commands_for, parts_of
from blklab.linux.scratch.space import Announce
from blklab.spec.workloads import Workload

if TYPE_CHECKING:
    from blklab.linux.disks.partitions import Partition
    from blklab.linux.journal.journal import Journal


class RawDevice:
    """A block device: read-only, unless writing was allowed and the device is free."""

    folder = None
    place = None

    def __init__(self, device: Path, *, allow_writes: bool, journal: Journal | None = None) -> None:
        self.device = device
        self._journal = journal
        self._claim: int | None = None
        self.read_only = not allow_writes
        self._size_bytes: int | None = None
        self._zones = zones_of_node(device)

    @property
    def size_bytes(self) -> int:
        """Size of the device."""
        if self._size_bytes is None:
            self._size_bytes = device_size_bytes(self.device)
        return self._size_bytes

    def check(self, workloads: Sequence[Workload]) -> None:
        """Checks sizes, and that the device is free if a workload writes."""
        for workload in workloads:
            if workload.writes and self.read_only:
                raise RefusedError(
                    f"the workload {workload.name} writes, and {self.device} is a block device:"
                    " its contents would be lost",
                    hint="name a directory or loop:1g, or give --allow-writes if the contents do not matter",
                )
            self.regions(workload)
        self._parts(workloads)
        if any(workload.writes for workload in workloads) and self._claim is None:
            check_writable_device(self.device)
            # Held until the session ends, so that nobody can mount it; fio does not claim it itself.
            self._claim = os.open(self.device, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC)

    def prepare(self, workloads: Sequence[Workload], announce: Announce) -> None:
        """Checks again; a device is used as it is, but for the nodes of its parts."""
        del announce
        self.check(workloads)
        add_parts(self._journal, self._parts(workloads))

    @property
    def _alignment_bytes(self) -> int:
        return (0 if self._zones is None else self._zones.zone_bytes) or EXTENT_ALIGNMENT_BYTES

    def _parts(self, workloads: Sequence[Workload]) -> list[Partition]:
        return parts_of(self.device, workloads, alignment_bytes=self._alignment_bytes)

    def regions(self, workload: Workload) -> list[JobRegions]:
        """Regions of the device, one after the other."""
        return regions_on_device(
            workload,
            str(self.device),
            self.size_bytes,
            alignment_bytes=self._alignment_bytes,
            part_path=lambda number: partition_path(str(self.device), number),
        )

    def commands(self, workloads: Sequence[Workload]) -> list[str]:
        """The nodes of its parts for jobs with several files; otherwise a device is used as it is."""
        return commands_for(self._parts(workloads))

    def let_others_pass(self) -> None:
        """There is no directory."""

    def close(self) -> None:
        """Releases the exclusive claim."""
        if self._claim is not None:
            os.close(self._claim)
            self._claim = None


def device_size_bytes(device: Path) -> int:
    """Size of a block device.

    Raises:
        DeviceVanishedError: if it is gone.
        RequirementError: if it cannot be opened, or is empty.
    """
    try:
        descriptor = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
        try:
            size = os.lseek(descriptor, 0, os.SEEK_END)
        finally:
            os.close(descriptor)
    except OSError as error:
        reason = reason_of(error)
        if error.errno in (errno.ENOENT, errno.ENXIO, errno.ENODEV):
            raise DeviceVanishedError(f"{device} is gone: {reason}") from error
        raise RequirementError(
            f"{device} cannot be opened: {reason}", hint="a container may deny access to the device"
        ) from error
    if not size:
        raise RequirementError(f"{device} is empty")
    return size
