"""A loop device over a scratch file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from blklab.linux.disks.partitions import partition_path
from blklab.linux.machine.host_change import shell_of
from blklab.linux.scratch.changes import HeldFolder, LoopOverFile, RandomDevice
from blklab.linux.scratch.data_files import check_space
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
        folder, loop = self._creation(journal)
        folder.make()
        loop.make()
        disk = loop.disk
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
        RandomDevice(self.device, self._size_bytes).make()
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
        device = RandomDevice(self.device, self._size_bytes)
        return [
            *shell_of([*self._creation(None), device]),
            *commands_for(parts_of(self.device, workloads)),
        ]

    def _creation(self, journal: Journal | None) -> tuple[HeldFolder, LoopOverFile]:
        folder = HeldFolder(self._scratch, journal)
        backing = self._scratch / "loop.img"
        return folder, LoopOverFile(backing, self._size_bytes, folder.opened, journal, str(self.device))

    def let_others_pass(self) -> None:
        """There is no directory."""

    def close(self) -> None:
        """Holds nothing; the journal removes the device and its file."""
