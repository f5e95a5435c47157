"""Folders, files of random data and loop devices, which make up scratch space; the journal removes them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from blklab.linux.disks.loop import create_over
from blklab.linux.machine.host_change import HostChange, required, shell_of
from blklab.linux.scratch.data_files import fill, lay_out, reserved, write_error

if TYPE_CHECKING:
    from blklab.linux.directories.held_directory import HeldDirectory
    from blklab.linux.disks.disk import Disk
    from blklab.linux.journal.journal import Journal


def shown(path: Path) -> str:
    """A path for a shell."""
    return shlex.quote(str(path))


def _filling(path: Path, length_bytes: int) -> list[str]:
    """Lines that fill a file or a device with the kernel's random data, until all is on the disk."""
    return [f"head -c {length_bytes} /dev/urandom > {shown(path)}", f"sync {shown(path)}"]


@dataclass
class HeldFolder(HostChange):
    """A directory of the run in one where others may rename; it is held open."""

    path: Path
    journal: Journal | None
    """None in a dry run."""
    held: HeldDirectory = field(init=False)

    def make(self) -> None:
        """Makes it.

        Raises:
            SpaceError, RunFailedError: if the file system refuses.
        """
        journal = required(self.journal)
        try:
            self.held = journal.hold_directory(self.path)
        except OSError as error:
            raise write_error(self.path, error) from error

    def opened(self) -> AbstractContextManager[int]:
        """Its descriptor, once it is made."""
        return nullcontext(self.held.fileno())

    def shell(self) -> list[str]:
        """A ``mkdir`` for its owner alone."""
        return PlainFolder(self.path).shell()


@dataclass(frozen=True)
class PlainFolder(HostChange):
    """A directory in one of the run's."""

    path: Path
    mode: int = 0o700
    """By default for its owner alone."""
    parents: bool = False
    """Whether to make those above it too, where they are missing."""

    def make(self) -> None:
        """Makes it."""
        self.path.mkdir(mode=self.mode, parents=self.parents)

    def shell(self) -> list[str]:
        """A ``mkdir``."""
        return [f"mkdir {'-p ' if self.parents else ''}-m {self.mode:o} {shown(self.path)}"]


@dataclass(frozen=True)
class FolderMode(HostChange):
    """The mode of a directory of ours."""

    path: Path
    mode: int

    def make(self) -> None:
        """Sets it."""
        self.path.chmod(self.mode)

    def shell(self) -> list[str]:
        """A ``chmod``."""
        return [f"chmod {self.mode:o} {shown(self.path)}"]


@dataclass(frozen=True)
class RandomFile(HostChange):
    """A file of random data."""

    path: Path
    length_bytes: int

    def make(self) -> None:
        """Writes it, and waits until it is on the disk.

        Raises:
            SpaceError, RunFailedError: if the file system refuses, or the disk fails.
        """
        self.path.unlink(missing_ok=True)
        lay_out(self.path.parent, {self.path.name: self.length_bytes})

    def shell(self) -> list[str]:
        """A ``head`` of the kernel's random data, and a ``sync``."""
        return _filling(self.path, self.length_bytes)


@dataclass(frozen=True)
class RandomDevice(HostChange):
    """A device of ours, full of random data."""

    path: Path
    length_bytes: int

    def make(self) -> None:
        """Writes the whole device once.

        Raises:
            SpaceError, RunFailedError: if the disk fails.
        """
        try:
            descriptor = os.open(self.path, os.O_WRONLY | os.O_EXCL | os.O_CLOEXEC)
            try:
                fill(descriptor, self.length_bytes)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise write_error(self.path, error) from error

    def shell(self) -> list[str]:
        """A ``head`` of the kernel's random data, and a ``sync``."""
        return _filling(self.path, self.length_bytes)


@dataclass(frozen=True)
class OwnMount(HostChange):
    """A mount in one of the run's directories; the journal unmounts it."""

    mount: HostChange
    """Mounts it, without a record."""
    point: Path
    journal: Journal | None
    """None in a dry run."""

    def make(self) -> None:
        """Records it, and mounts.

        Raises:
            MissingToolError, RequirementError: if ``mount`` is missing, or fails.
        """
        required(self.journal).own_mount(self.point)
        self.mount.make()

    def shell(self) -> list[str]:
        """The ``mount``."""
        return self.mount.shell()


@dataclass(frozen=True)
class BindMount(HostChange):
    """A held directory at another place, where nobody else can rename."""

    source: HeldFolder
    point: Path

    def make(self) -> None:
        """Mounts it.

        Raises:
            RequirementError: if the kernel refuses.
        """
        self.source.held.bind_to(self.point)

    def shell(self) -> list[str]:
        """A ``mount --bind``."""
        return [f"mount --bind -o nosuid,nodev {shown(self.source.path)} {shown(self.point)}"]


@dataclass
class LoopOverFile(HostChange):
    """A file with all its blocks allocated, and a loop device over it."""

    backing: Path
    length_bytes: int
    folder: Callable[[], AbstractContextManager[int]]
    """Opens the directory that the file is made in."""
    journal: Journal | None
    """None in a dry run."""
    node: str | None = None
    """The device's likely node; None to print whichever is free."""
    disk: Disk = field(init=False)

    def make(self) -> None:
        """Makes both.

        Raises:
            SpaceError, RunFailedError, RefusedError: if the file cannot be made.
            RequirementError: if loop devices or direct I/O are unavailable.
        """
        journal = required(self.journal)
        with (
            self.folder() as folder,
            reserved(folder, self.backing, self.length_bytes) as descriptor,
        ):
            self.disk = create_over(journal, descriptor, self.backing)

    def shell(self) -> list[str]:
        """A ``fallocate`` and a ``losetup``."""
        file = shown(self.backing)
        attach = f"losetup --direct-io=on {self.node} {file}"
        if self.node is None:
            attach = f"device=$(losetup --find --show --direct-io=on {file})"
        return [f"fallocate -l {self.length_bytes} {file}", attach]

    @property
    def shown_node(self) -> str:
        """The device for a shell that has run these."""
        return '"$device"' if self.node is None else self.node


class LaidOutFiles:
    """The test files of a folder. A session may be prepared again, for loads that were not known before."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lengths: dict[str, int] = {}

    def missing(self, lengths: Mapping[str, int]) -> dict[str, int]:
        """Those of the wanted files that are not there, or too short."""
        return {name: length for name, length in lengths.items() if self._lengths.get(name, 0) < length}

    def changes(self, lengths: Mapping[str, int]) -> list[RandomFile]:
        """Those that are missing, as changes."""
        return [RandomFile(self._folder / name, length) for name, length in self.missing(lengths).items()]

    def lay_out(self, lengths: Mapping[str, int]) -> None:
        """Creates those that are missing."""
        for change in self.changes(lengths):
            change.make()
            self._lengths[change.path.name] = change.length_bytes

    def commands(self, lengths: Mapping[str, int]) -> list[str]:
        """The same as shell commands, until all are on the disk."""
        return shell_of(self.changes(lengths))
