"""A change of this machine: one object that makes itself, takes itself back and prints itself as shell.

A dry run prints the objects that a run makes. The journal has what they replace, for runs that are killed.
"""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from blklab.errors import TunableError
from blklab.linux.machine.kernel_files import text_or_empty, write_once
from blklab.linux.processes.programs import run_program

JournalT = TypeVar("JournalT")

_ROUNDS = 4
"""Rounds in which changes are taken back and read again: undoing one may move another."""


class HostChange(ABC):
    """One change of this machine."""

    @abstractmethod
    def make(self) -> None:
        """Makes it."""

    @abstractmethod
    def shell(self) -> list[str]:
        """The same as lines for a shell."""

    def undoing(self) -> list[HostChange]:
        """The changes that bring back the present state, in order; none if the journal does so."""
        return []

    def holds(self) -> bool:
        """Whether the machine is in the state that the change makes, as far as it can tell."""
        return True


@dataclass(frozen=True)
class KernelWrite(HostChange):
    """One write(2) of a value to a file of sysfs, procfs or a cgroup file system."""

    path: Path
    value: str

    def make(self) -> None:
        """Writes the value.

        Raises:
            OSError: if the kernel refuses it.
        """
        write_once(self.path, self.value)

    def shell(self) -> list[str]:
        """An ``echo``."""
        return [f"echo {shlex.quote(self.value)} > {shlex.quote(str(self.path))}"]

    def undoing(self) -> list[HostChange]:
        """The write of the present content."""
        return [KernelWrite(self.path, text_or_empty(self.path))]

    def holds(self) -> bool:
        """Whether the file has the value."""
        return text_or_empty(self.path) == self.value.strip()


def required(journal: JournalT | None) -> JournalT:
    """The journal that a change is recorded in; a dry run has none, and changes nothing.

    Raises:
        RuntimeError: if there is none.
    """
    if journal is None:
        raise RuntimeError("a dry run changes nothing")
    return journal


@dataclass(frozen=True)
class ProgramRun(HostChange):
    """A run of one of the system's programs; the journal takes back what it made."""

    words: tuple[str, ...]
    package: str
    """Debian's package that holds the program, for the hint."""

    def make(self) -> None:
        """Runs it to its end.

        Raises:
            MissingToolError, RequirementError: if it is missing, or fails.
        """
        run_program(list(self.words), package=self.package)

    def shell(self) -> list[str]:
        """Its command line."""
        return [shlex.join(self.words)]


class MadeChanges:
    """Changes in force that can be taken back."""

    def __init__(self) -> None:
        """None yet."""
        self._undoing: list[HostChange] = []

    def make(self, changes: Iterable[HostChange]) -> list[HostChange]:
        """Makes changes in order.

        Returns:
            The changes that undo them, the last one first.

        Raises:
            TunableError: if the kernel refuses one; those before it are then taken back.
        """
        made = MadeChanges()
        # Read before the first of them: one change may move what another one is about.
        planned = [(change, _undoing(change)) for change in changes]
        try:
            for change, undoing in planned:
                made._undoing = [*undoing, *made._undoing]
                change.make()
        except TunableError:
            made.take_back()
            raise
        self._undoing = [*made._undoing, *self._undoing]
        return made._undoing

    def take_back(self) -> None:
        """Takes all back, the last one first, and again until each of them holds.

        Raises:
            OSError: if the kernel refuses one; another call continues with the next.
        """
        undone = []
        while self._undoing:
            undone.append(self._undoing.pop(0))
            undone[-1].make()
        for _ in range(_ROUNDS - 1):
            moved = [change for change in undone if not change.holds()]
            if not moved:
                return
            for change in moved:
                change.make()


def _undoing(change: HostChange) -> list[HostChange]:
    """The changes that undo one; none if its file is not there, which `make` then says."""
    try:
        return change.undoing()
    except FileNotFoundError:
        return []


def shell_of(changes: Iterable[HostChange]) -> list[str]:
    """Changes as lines for a shell."""
    return [line for change in changes for line in change.shell()]
