"""A file system of blklab's own, for commands: on a device of the target's, or in an image in a directory.

Unmounting it and mounting it again empties its page cache, and no other one (``drop_caches`` would empty the
whole machine's).
"""

from __future__ import annotations

import os
import shlex
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from blklab.errors import SpaceError
from blklab.linux.directories.kernel_calls import open_without_links
from blklab.linux.disks.unmount import unmount
from blklab.linux.machine.host_change import HostChange, required
from blklab.linux.processes.programs import run_program
from blklab.linux.scratch.changes import FolderMode, LoopOverFile, OwnMount, PlainFolder, shown
from blklab.linux.scratch.raw_device import device_size_bytes
from blklab.quantities.units import format_bytes

if TYPE_CHECKING:
    from blklab.linux.journal.journal import Journal

KIND = "ext4"
MOUNT_OPTIONS = "noatime,nosuid,nodev"
"""Without set-user-id programs, as another user may have had the device or the directory."""
_MAKE = ("mkfs.ext4", "-q", "-F", "-i", "8192", "-E", "lazy_itable_init=0,lazy_journal_init=0")
"""Room for many small files; lazy initialisation would write during the runs."""
_MOUNT = ("mount", "-t", KIND, "-o", MOUNT_OPTIONS)
_MODE = 0o755
"""Of its root: a command may start programs for other users."""


@dataclass(frozen=True)
class Image:
    """A file for the file system."""

    path: Path
    size_bytes: int


@dataclass(frozen=True)
class FilesystemCreation(HostChange):
    """A new ext4; where it is on a device of the target, the journal destroys it at the end."""

    device: Path | LoopOverFile
    journal: Journal | None
    """None in a dry run."""

    def make(self) -> None:
        """Makes it, with an identity by which the journal knows it.

        Raises:
            MissingToolError, RequirementError: if ``mkfs.ext4`` is missing, or fails.
        """
        journal = required(self.journal)
        identity = str(uuid.uuid4())
        if isinstance(self.device, Path):
            journal.own_filesystem(self.device, identity)
        run_program([*_MAKE, "-U", identity, _node(self.device)], package="e2fsprogs")

    def shell(self) -> list[str]:
        """The ``mkfs.ext4``, which draws an identity by itself."""
        return [f"{shlex.join(_MAKE)} {_shown_node(self.device)}"]


@dataclass(frozen=True)
class FilesystemMount(HostChange):
    """The mount of an ext4 of ours."""

    device: Path | LoopOverFile
    point: Path

    def make(self) -> None:
        """Mounts it.

        Raises:
            MissingToolError, RequirementError: if ``mount`` is missing, or fails.
        """
        run_program([*_MOUNT, _node(self.device), str(self.point)], package="mount")

    def shell(self) -> list[str]:
        """The ``mount``."""
        return [f"{shlex.join(_MOUNT)} {_shown_node(self.device)} {shown(self.point)}"]


@dataclass(frozen=True)
class Unmount(HostChange):
    """The end of a mount of ours."""

    point: Path

    def make(self) -> None:
        """Unmounts it.

        Raises:
            RequirementError: if a process still uses it.
        """
        unmount(self.point)

    def shell(self) -> list[str]:
        """The ``umount``."""
        return [f"umount {shown(self.point)}"]


class OwnFilesystem:
    """An ext4 on a device, or in an image through a loop device; the journal unmounts and removes it."""

    def __init__(self, place: Path | Image, mount_point: Path, journal: Journal | None) -> None:
        """Changes nothing.

        Args:
            place: The device, or an image to be made.
            mount_point: A directory to be made in one of blklab's own.
            journal: Records what is made; None for a dry run.
        """
        self._place = place
        self._point = mount_point
        device = place if isinstance(place, Path) else _loop_over(place, journal)
        mount = FilesystemMount(device, mount_point)
        self.creation: list[HostChange] = [
            *([device] if isinstance(device, LoopOverFile) else []),
            FilesystemCreation(device, journal),
            PlainFolder(mount_point, _MODE),
            OwnMount(mount, mount_point, journal),
            FolderMode(mount_point, _MODE),
        ]
        """Makes the file system and mounts it."""
        self.remounting: list[HostChange] = [Unmount(mount_point), mount]
        """Writes everything back and empties its page cache."""

    def check(self, needed_bytes: int) -> None:
        """Makes sure that there is room.

        Raises:
            SpaceError: if there is not.
        """
        if isinstance(self._place, Image):
            raise TypeError("the space for an image is checked with that of the directory")
        size_bytes = device_size_bytes(self._place)
        if size_bytes < needed_bytes:
            raise SpaceError(
                f"{self._place} has {format_bytes(size_bytes)}, commands need {format_bytes(needed_bytes)}",
                hint="name a larger device, or say how much the command needs (--space)",
            )


def _loop_over(image: Image, journal: Journal | None) -> LoopOverFile:
    return LoopOverFile(image.path, image.size_bytes, lambda: _opened(image.path.parent), journal)


def _node(device: Path | LoopOverFile) -> str:
    """The node of a device that is there."""
    return str(device if isinstance(device, Path) else device.disk.dev_path)


def _shown_node(device: Path | LoopOverFile) -> str:
    """A device for a shell."""
    return shown(device) if isinstance(device, Path) else device.shown_node


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    descriptor = open_without_links(folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
