"""A loop device over a scratch file."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from blklab.linux.disks.loop import create_over
from blklab.linux.disks.partitions import partition_path
from blklab.linux.scratch.data_files import check_space, fill, reserved, write_error
from blklab.linux.scratch.layout import JobRegions, regions_on_device
from blklab.linux.scratch.parts import add_parts, commands_for, parts_of
from blklab.linux.scratch.space import Announce
from blklab.quantities.units import format_bytes
from blklab.spec.workloads import Workload

if TYPE_CHECKING:
    from blklab.linux.disks.disk import Disk
    from blklab.linux.journal.journal import Journal


class ScratchLoop:
    """Our own loop device over our own scratch file: writable, and removed by the journal."""

    read_only = False
    folder = None
    place = None

    def __init__(self, size_bytes: int, directory: Path, run_id: str, name: str) -> None:
        self._size_bytes = size_bytes
        self._directory = directory
        self.device = Path("/dev") / name
        self._scratch = directory.resolve() / f".blklab-{run_id}"
        self._filled = False
        self._journal: Journal | None = None

    def create(self, journal: Journal) -> Disk:
        """Creates the scratch file with all its blocks allocated, and the loop device over it.

        Raises:
            SpaceError: if there is too little space.
            RequirementError: if loop devices or direct I/O are unavailable.
        """
        check_space(self._directory, self._size_bytes)
        self._journal = journal
        backing = self._scratch / "loop.img"
        try:
            held = journal.hold_directory(self._scratch)
        except OSError as error:
            raise write_error(self._scratch, error) from error
        with reserved(held.fileno(), backing, self._size_bytes) as descriptor:
            disk = create_over(journal, descriptor, backing)
        self.device = disk.dev_path
        self._size_bytes = disk.size_bytes
        return disk

    @property
    def size_bytes(self) -> int:
        """Size of the device."""
        return self._size_bytes

    def check(self, workloads: Sequence[Workload]) -> None:
        """Checks sizes."""
        for workload in workloads:
            self.regions(workload)
        parts_of(self.device, workloads)

    def prepare(self, workloads: Sequence[Workload], announce: Announce) -> None:
        """Writes the whole device once, so that every block of its file has been written, and divides it."""
        self.check(workloads)
        self._fill(announce)
        add_parts(self._journal, parts_of(self.device, workloads))

    def _fill(self, announce: Announce) -> None:
        if self._filled:
            return
        announce(f"writing {format_bytes(self._size_bytes)} to {self.device}")
        try:
            descriptor = os.open(self.device, os.O_WRONLY | os.O_EXCL | os.O_CLOEXEC)
            try:
                fill(descriptor, self._size_bytes)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise write_error(self.device, error) from error
        self._filled = True

    def regions(self, workload: Workload) -> list[JobRegions]:
        """Regions of the device, one after the other."""
        return regions_on_device(
            workload,
            str(self.device),
            self._size_bytes,
            part_path=lambda number: partition_path(str(self.device), number),
        )

    def commands(self, workloads: Sequence[Workload]) -> list[str]:
        """Creation of the file and the device, and of its parts."""
        backing = shlex.quote(str(self._scratch / "loop.img"))
        return [
            f"mkdir -m 700 {shlex.quote(str(self._scratch))}",
            f"fallocate -l {self._size_bytes} {backing}",
            f"losetup --direct-io=on {self.device} {backing}",
            f"head -c {self._size_bytes} /dev/urandom > {self.device}",
            f"sync {self.device}",
            *commands_for(parts_of(self.device, workloads)),
        ]

    def let_others_pass(self) -> None:
        """There is no directory."""

    def close(self) -> None:
        """Holds nothing; the journal removes the device and its file."""
