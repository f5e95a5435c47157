"""Settings of writeback that a scheduler's choice brings: files of /proc/sys/vm, on this machine.

They hold for the whole machine, so they are in force only while their choice is, and are taken back before
another one's. The journal has their values from before.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from blklab.errors import TunableError, reason_of
from blklab.linux.machine.host_change import KernelWrite, shell_of
from blklab.linux.machine.kernel_files import text_or_empty
from blklab.spec.schedulers import SchedulerChoice
from blklab.spec.writeback_settings import PREFIX, settings_cancelled_by, writeback_names

if TYPE_CHECKING:
    from blklab.linux.journal.journal import Journal

FOLDER = Path("/proc/sys/vm")
_UNSET = "0"


class WritebackSettings:
    """The settings of writeback, as the choices of one experiment change them."""

    def __init__(self, folder: Path = FOLDER) -> None:
        """Changes nothing yet.

        Args:
            folder: The kernel's files.
        """
        self._folder = folder
        self._before: dict[str, str] = {}
        """By file: the content that restores it."""
        self._watched: dict[str, None] = {}
        self._in_force: dict[str, str] = {}

    def protect(self, choices: Sequence[SchedulerChoice], journal: Journal) -> None:
        """Records what choices will change.

        Raises:
            TunableError: if the kernel lacks a setting.
        """
        for name in (name for choice in choices for name in choice.of_writeback):
            self._watched[name] = None
            restoring = self._restoring(name)
            if restoring not in self._before:
                self._before[restoring] = journal.protect_attribute(self._folder / restoring).strip()

    def _restoring(self, name: str) -> str:
        """The file that restores a setting: of two for one limit, the one that is in force."""
        if not (self._folder / name).exists():
            raise TunableError(f"this kernel has no setting {PREFIX}{name}")
        other = settings_cancelled_by(name)
        if other is None:
            return name
        if {name, other} & self._before.keys():
            return name if name in self._before else other
        size = name if name.endswith("bytes") else other
        ratio = other if size == name else name
        return ratio if self._read(size) in ("", _UNSET) else size

    def apply(self, choice: SchedulerChoice) -> None:
        """Takes the last choice's settings back and makes this one's, if they differ.

        Raises:
            TunableError: if the kernel refuses a value or keeps another one.
        """
        wanted = choice.of_writeback
        if wanted == self._in_force:
            return
        self.undo()
        self._in_force = wanted
        for write in self._writes(wanted):
            asked = f"{PREFIX}{write.path.name}={write.value}"
            try:
                write.make()
            except OSError as error:
                raise TunableError(f"the kernel refuses {asked}: {reason_of(error)}") from error
            if (kept := self._read(write.path.name)) != write.value:
                raise TunableError(f"asked for {asked}, the kernel kept {kept}")

    def undo(self) -> None:
        """Brings back what the journal has."""
        for write in self._writes(self._before):
            if not write.holds():
                write.make()
        self._in_force = {}

    def read(self) -> dict[str, str]:
        """The settings that some choice changes, by their names in choices."""
        return {f"{PREFIX}{name}": self._read(name) for name in self._watched}

    def changed_since(self, before: Mapping[str, str]) -> list[str]:
        """Names of settings that are not as `read` found them then."""
        return [name for name, value in self.read().items() if before.get(name) != value]

    def commands(self, choice: SchedulerChoice) -> list[str]:
        """The writes of `apply` as shell commands."""
        return shell_of(self._writes(choice.of_writeback))

    def _writes(self, values: Mapping[str, str]) -> list[KernelWrite]:
        return [KernelWrite(self._folder / name, value) for name, value in values.items()]

    def _read(self, name: str) -> str:
        return text_or_empty(self._folder / name)


def writeback_in_force() -> dict[str, str]:
    """All settings of writeback of this machine, by their names in choices."""
    return {
        name: text_or_empty(path)
        for name in writeback_names()
        if os.access(path := FOLDER / name.removeprefix(PREFIX), os.R_OK)
    }
