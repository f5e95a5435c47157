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
from blklab.linux.processes.programs import run_program
from blklab.linux.scratch.changes import LoopOverFile
from blklab.linux.scratch.raw_device import device_size_bytes
from blklab.quantities.units import format_bytes

if TYPE_CHECKING:
    from blklab.linux.journal.journal import Journal

KIND = "ext4"
MOUNT_OPTIONS = "noatime,nosuid,nodev"
"""Without set-user-id programs, as another user may have had the device or the directory."""
_MAKE = ("mkfs.ext4", "-q", "-F", "-i", "8192", "-E", "lazy_itable_init=0,lazy_journal_init=0")
"""Room for many small files; lazy initialisation would write during the runs."""


@dataclass(frozen=True)
class Image:
    """A file for the file system."""

    path: Path
    size_bytes: int


class OwnFilesystem:
    """An ext4 on a device, or in an image through a loop device; the journal unmounts and removes it."""

    def __init__(self, place: Path | Image, mount_point: Path) -> None:
        """Changes nothing.

        Args:
            place: The device, or an image to be made.
            mount_point: A directory to be made in one of blklab's own.
        """
        self._place = place
        self.mount_point = mount_point
        self._device: Path | None = place if isinstance(place, Path) else None

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

    def create(self, journal: Journal) -> None:
        """Makes the file system and mounts it.

        Raises:
            SpaceError: if there is too little space.
            RequirementError: if loop devices or ext4 are unavailable.
            MissingToolError: if a program is missing.
        """
        if isinstance(self._place, Image):
            loop = self._loop(self._place, journal)
            loop.make()
            self._device = loop.disk.dev_path
        identity = str(uuid.uuid4())
        if isinstance(self._place, Path):
            journal.own_filesystem(self._place, identity)
        run_program([*_MAKE, "-U", identity, str(self._device)], package="e2fsprogs")
        self.mount_point.mkdir(mode=0o755)
        journal.own_mount(self.mount_point)
        self._mount()
        self.mount_point.chmod(0o755)

    def empty_page_cache(self) -> None:
        """Writes everything back, unmounts and mounts again.

        Raises:
            RequirementError: if a process still uses it.
        """
        unmount(self.mount_point)
        self._mount()

    def creation_commands(self) -> list[str]:
        """The steps of `create` as shell commands."""
        lines: list[str] = []
        device = shlex.quote(str(self._place))
        if isinstance(self._place, Image):
            device = '"$device"'
            lines = self._loop(self._place, None).shell()
        point = shlex.quote(str(self.mount_point))
        return [*lines, f"{shlex.join(_MAKE)} {device}", f"mkdir -p {point}", self._mount_command(device)]

    def remount_commands(self) -> list[str]:
        """The steps of `empty_page_cache` as shell commands."""
        device = '"$device"' if isinstance(self._place, Image) else shlex.quote(str(self._place))
        return [f"umount {shlex.quote(str(self.mount_point))}", self._mount_command(device)]

    @staticmethod
    def _loop(image: Image, journal: Journal | None) -> LoopOverFile:
        return LoopOverFile(image.path, image.size_bytes, lambda: _opened(image.path.parent), journal)

    def _mount(self) -> None:
        run_program(
            ["mount", "-t", KIND, "-o", MOUNT_OPTIONS, str(self._device), str(self.mount_point)],
            package="mount",
        )

    def _mount_command(self, device: str) -> str:
        return f"mount -t {KIND} -o {MOUNT_OPTIONS} {device} {shlex.quote(str(self.mount_point))}"


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    descriptor = open_without_links(folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
