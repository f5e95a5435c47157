"""Directories in which commands work: on the target's own file system, or on one of blklab's own.

In a directory target a warm command works in scratch space itself, a cold one on a file system in an image
there. A device has a file system of blklab's own for all commands and for the files of a load beside them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from blklab.errors import RefusedError
from blklab.linux.disks.device_in_use import check_writable_device
from blklab.linux.machine.host_change import HostChange, ProgramRun, shell_of
from blklab.linux.scratch.changes import PlainFolder, RandomFile
from blklab.linux.scratch.data_files import check_space
from blklab.linux.scratch.layout import files_in_directory
from blklab.linux.scratch.own_filesystem import Image, OwnFilesystem
from blklab.linux.scratch.run_folder import RunFolder
from blklab.linux.scratch.space import Announce, ScratchSpace
from blklab.quantities.units import format_bytes
from blklab.spec.workloads import Workload

if TYPE_CHECKING:
    from blklab.linux.journal.journal import Journal

MOUNT_NAME = "filesystem"
"""In the run's work folder, which other users may pass through: a command may start programs for them."""
BESIDE_FOLDER = "beside"
_IMAGE_NAME = "commands.img"
_PLAIN_FOLDER = "commands"
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")


class CommandSpace:
    """The directories of an experiment's commands."""

    def __init__(self, space: ScratchSpace, run_folder: RunFolder) -> None:
        """Changes nothing.

        Args:
            space: The target's scratch space.
            run_folder: The run's directory in memory; need not exist yet.
        """
        self._space = space
        self._run_folder = run_folder
        self._mount_point = run_folder.path / MOUNT_NAME
        self._numbers: dict[str, int] = {}
        self._own: OwnFilesystem | None = None

    @property
    def on_device(self) -> bool:
        """Whether the target is a device, so that its file system is blklab's own."""
        return self._space.folder is None

    @property
    def beside_folder(self) -> str:
        """The directory of the files of loads beside commands, relative to the run's."""
        folder = self._space.folder or self._mount_point / BESIDE_FOLDER
        return str(folder.relative_to(self._run_folder.path))

    def check(self, workloads: Sequence[Workload]) -> None:
        """Makes sure that the commands among the workloads have room, and may write.

        Raises:
            RefusedError: if they would overwrite a device.
            SpaceError: if there is too little room.
        """
        commands = _commands_of(workloads)
        if not commands:
            return
        needed = sum(_space_of(workload) for workload in commands)
        beside = sum(files_in_directory(loads_beside(commands)).values())
        if self._space.place is not None:
            check_space(self._space.place, needed + beside)
            return
        if self._space.read_only:
            raise RefusedError(
                f"commands need a file system, and {self._space.device} is a block device:"
                " its contents would be lost",
                hint="name a directory or loop:4g, or give --allow-writes if the contents do not matter",
            )
        if self._space.device is not None and self._space.device.exists():
            self._filesystem(commands).check(needed + beside)

    def prepare(self, workloads: Sequence[Workload], journal: Journal, announce: Announce) -> None:
        """Makes file system and directories for the commands among the workloads.

        Raises:
            BlklabError: if that fails.
        """
        commands = _commands_of(workloads)
        self._space.let_others_pass()
        self._run_folder.let_others_pass()
        if self._own is None and any(self._needs_own(workload) for workload in commands):
            if self._space.device is not None and not self._space.read_only:
                check_writable_device(self._space.device)
            own = self._filesystem(commands, journal)
            where = self._space.device or self._space.place
            announce(f"making a file system for commands on {where}")
            for change in own.creation:
                change.make()
            self._own = own
            if self.on_device:
                self._lay_out_beside(commands, announce)
        for workload in commands:
            self._folder_of(workload).make()

    def directory(self, workload: Workload) -> Path:
        """The directory of a command."""
        number = self._numbers.setdefault(workload.name, len(self._numbers) + 1)
        name = f"{number}-{_UNSAFE.sub('-', workload.name).strip('-.')}"
        if self._needs_own(workload) or self._space.folder is None:
            return self._mount_point / name
        return self._space.folder / _PLAIN_FOLDER / name

    def page_cache_changes(self, workload: Workload) -> list[HostChange]:
        """The changes before a run: a cold command's file system loses its pages, a warm one's is synced."""
        if workload.command is not None and workload.command.cold:
            return self._filesystem([workload]).remounting
        return [ProgramRun(("sync", "-f", str(self.directory(workload))), "coreutils")]

    def creation_commands(self, workload: Workload) -> list[str]:
        """The steps of `prepare` for one command as shell commands."""
        changes = [*self._filesystem([workload]).creation] if self._needs_own(workload) else []
        if self.on_device and workload.beside is not None:
            changes += self._beside_changes([workload])
        return shell_of([*changes, self._folder_of(workload)])

    def _folder_of(self, workload: Workload) -> PlainFolder:
        return PlainFolder(self.directory(workload), mode=0o755, parents=True)

    def _needs_own(self, workload: Workload) -> bool:
        return self.on_device or (workload.command is not None and workload.command.cold)

    def _filesystem(self, commands: Iterable[Workload], journal: Journal | None = None) -> OwnFilesystem:
        if self._own is not None:
            return self._own
        if self._space.device is not None:
            return OwnFilesystem(self._space.device, self._mount_point, journal)
        size_bytes = sum(_space_of(workload) for workload in commands if self._needs_own(workload))
        image = Image((self._space.folder or Path()) / _IMAGE_NAME, size_bytes)
        return OwnFilesystem(image, self._mount_point, journal)

    def _lay_out_beside(self, commands: Sequence[Workload], announce: Announce) -> None:
        lengths = files_in_directory(loads_beside(commands))
        if not lengths:
            return
        where = self._mount_point / BESIDE_FOLDER
        announce(f"laying out {format_bytes(sum(lengths.values()))} of test files in {where}")
        for change in self._beside_changes(commands):
            change.make()

    def _beside_changes(self, commands: Sequence[Workload]) -> list[HostChange]:
        folder = self._mount_point / BESIDE_FOLDER
        lengths = files_in_directory(loads_beside(commands))
        files = [RandomFile(folder / name, length) for name, length in lengths.items()]
        return [PlainFolder(folder), *files]


def loads_beside(workloads: Iterable[Workload]) -> list[Workload]:
    """The loads beside commands, each once."""
    found: dict[str, Workload] = {}
    for workload in workloads:
        if workload.beside is not None:
            found[workload.beside.source] = workload.beside
    return list(found.values())


def _commands_of(workloads: Iterable[Workload]) -> list[Workload]:
    return [workload for workload in workloads if workload.command is not None]


def _space_of(workload: Workload) -> int:
    return 0 if workload.command is None else workload.command.space_bytes
