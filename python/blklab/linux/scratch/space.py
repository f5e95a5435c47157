"""Where jobs put their data: files in a scratch folder, or the blocks of a device."""

from __future__ import annotations

import errno
import os
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from blklab.errors import DeviceVanishedError, RefusedError, RequirementError, reason_of
from blklab.linux.disks.device_in_use import check_writable_device
from blklab.linux.disks.loop import create as create_loop
from blklab.linux.scratch.data_files import check_space, fill, lay_out, reserve, write_error
from blklab.linux.scratch.layout import (
    JobRegions,
    files_in_directory,
    regions_in_directory,
    regions_on_device,
)
from blklab.quantities.units import format_bytes
from blklab.spec.workloads import Workload

if TYPE_CHECKING:
    from blklab.linux.disks.disk import Disk
    from blklab.linux.journal.journal import Journal

Announce = Callable[[str], None]

DEFAULT_SCRATCH_FOLDER = Path("/var/tmp")  # noqa: S108 - what lives there has a folder of its own (mode 700)
"""Where scratch files of loop devices go: on disk, unlike /tmp on many systems."""


class ScratchSpace(Protocol):
    """Somewhere that jobs can work."""

    @property
    def read_only(self) -> bool:
        """Whether fio is to be kept from writing."""

    @property
    def folder(self) -> Path | None:
        """The folder of the regions' files; nothing for devices."""

    @property
    def device(self) -> Path | None:
        """The device itself; nothing for files."""

    def check(self, workloads: Sequence[Workload]) -> None:
        """Makes sure that the workloads can work here; nothing is changed."""

    def prepare(self, workloads: Sequence[Workload], announce: Announce) -> None:
        """Lays out what the workloads need."""

    def regions(self, workload: Workload) -> list[JobRegions]:
        """Where each clone of each job works."""

    def commands(self, workloads: Sequence[Workload]) -> list[str]:
        """What `prepare` does, as shell commands."""

    def close(self) -> None:
        """Frees what is held."""


class ScratchDirectory:
    """Files in a scratch folder of a run, which the journal removes."""

    read_only = False
    device = None

    def __init__(self, directory: Path, run_id: str, journal: Journal | None) -> None:
        self._directory = directory
        self._journal = journal
        self.folder: Path = directory.resolve() / f".blklab-{run_id}"

    def check(self, workloads: Sequence[Workload]) -> None:
        """Checks sizes and free space."""
        check_space(self._directory, sum(files_in_directory(workloads).values()))

    def prepare(self, workloads: Sequence[Workload], announce: Announce) -> None:
        """Lays out the files that all workloads share."""
        lengths = files_in_directory(workloads)
        total = sum(lengths.values())
        check_space(self._directory, total)
        if self._journal is None:
            raise RuntimeError("nothing is laid out in a dry run")
        announce(f"laying out {format_bytes(total)} of test files in {self.folder}")
        try:
            self._journal.own_directory(self.folder)
        except OSError as error:
            raise write_error(self.folder, error) from error
        lay_out(self.folder, lengths)

    def file_lengths(self, workloads: Sequence[Workload]) -> dict[str, int]:
        """Lengths in bytes of the files that the workloads share, by name."""
        return files_in_directory(workloads)

    def regions(self, workload: Workload) -> list[JobRegions]:
        """Regions by file name within the folder."""
        return regions_in_directory(workload)

    def commands(self, workloads: Sequence[Workload]) -> list[str]:
        """Creation of the folder and its files."""
        lines = [f"mkdir -p -m 700 {shlex.quote(str(self.folder))}"]
        for name, length in files_in_directory(workloads).items():
            lines.append(f"head -c {length} /dev/urandom > {shlex.quote(str(self.folder / name))}")
        return [*lines, f"sync -f {shlex.quote(str(self.folder))}"]

    def close(self) -> None:
        """Nothing is held."""


class RawDevice:
    """The blocks of a block device that exists: only read, unless writing was allowed and harms nobody."""

    folder = None

    def __init__(self, device: Path, *, allow_writes: bool) -> None:
        self.device = device
        self._claim: int | None = None
        self.read_only = not allow_writes
        self._size_bytes: int | None = None

    @property
    def size_bytes(self) -> int:
        """Size of the device."""
        if self._size_bytes is None:
            self._size_bytes = device_size_bytes(self.device)
        return self._size_bytes

    def check(self, workloads: Sequence[Workload]) -> None:
        """Checks sizes, and for workloads that write that nobody else uses the device."""
        for workload in workloads:
            if workload.writes and self.read_only:
                raise RefusedError(
                    f"the workload {workload.name} writes, and {self.device} is a block device:"
                    " its contents would be lost",
                    hint="name a directory or loop:1g, or give --allow-writes if the contents do not matter",
                )
            self.regions(workload)
        if any(workload.writes for workload in workloads) and self._claim is None:
            check_writable_device(self.device)
            # Held until the session ends: nobody can mount it meanwhile. fio does not ask for exclusive use.
            self._claim = os.open(self.device, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC)

    def prepare(self, workloads: Sequence[Workload], announce: Announce) -> None:
        """A device is used as it is."""
        del announce
        self.check(workloads)

    def regions(self, workload: Workload) -> list[JobRegions]:
        """Regions of the device, one behind the other."""
        return regions_on_device(workload, str(self.device), self.size_bytes)

    def commands(self, workloads: Sequence[Workload]) -> list[str]:
        """Nothing is done."""
        del workloads
        return []

    def close(self) -> None:
        """Gives up the exclusive use."""
        if self._claim is not None:
            os.close(self._claim)
            self._claim = None


class ScratchLoop:
    """A loop device of ours over a scratch file of ours: written to freely, removed by the journal."""

    read_only = False
    folder = None

    def __init__(self, size_bytes: int, directory: Path, run_id: str, name: str) -> None:
        self._size_bytes = size_bytes
        self._directory = directory
        self.device = Path("/dev") / name
        self._scratch = directory.resolve() / f".blklab-{run_id}"
        self._filled = False

    def create(self, journal: Journal) -> Disk:
        """Creates the scratch file, its blocks reserved, and the loop device over it.

        Raises:
            SpaceError: if there is no room.
            RequirementError: if loop devices or direct I/O are not to be had.
        """
        check_space(self._directory, self._size_bytes)
        backing = self._scratch / "loop.img"
        try:
            journal.own_directory(self._scratch)
        except OSError as error:
            raise write_error(self._scratch, error) from error
        reserve(backing, self._size_bytes)
        disk = create_loop(journal, backing)
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

    def prepare(self, workloads: Sequence[Workload], announce: Announce) -> None:
        """Writes the whole device once, so that its file has real blocks everywhere."""
        self.check(workloads)
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
        """Regions of the device, one behind the other."""
        return regions_on_device(workload, str(self.device), self._size_bytes)

    def commands(self, workloads: Sequence[Workload]) -> list[str]:
        """Creation of the file and the device."""
        del workloads
        backing = shlex.quote(str(self._scratch / "loop.img"))
        return [
            f"mkdir -p -m 700 {shlex.quote(str(self._scratch))}",
            f"fallocate -l {self._size_bytes} {backing}",
            f"losetup --direct-io=on {self.device} {backing}",
            f"head -c {self._size_bytes} /dev/urandom > {self.device}",
            f"sync {self.device}",
        ]

    def close(self) -> None:
        """Nothing is held: the journal removes file and device."""


def device_size_bytes(device: Path) -> int:
    """Size of a block device.

    Raises:
        DeviceVanishedError: if it is not there any more.
        RequirementError: if it may not be opened, or is empty.
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
            f"{device} cannot be opened: {reason}", hint="in a container or guest the device may be forbidden"
        ) from error
    if not size:
        raise RequirementError(f"{device} is empty")
    return size
