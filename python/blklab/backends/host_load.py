"""A kind of load on this machine: its interface, and what all loads of a session share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from blklab.backends.host_changes import HostChanges
from blklab.backends.host_groups import HostGroups
from blklab.backends.protocol import SessionOptions
from blklab.linux.disks.disk import Disk
from blklab.linux.journal.journal import Journal
from blklab.linux.load.fio_output import FioReport
from blklab.linux.machine.monitor import MachineMonitor
from blklab.linux.scratch import page_cache
from blklab.linux.scratch.run_folder import RunFolder
from blklab.linux.scratch.space import Announce, ScratchSpace
from blklab.records.machine_events import MachineEvents
from blklab.spec.plan import Cell
from blklab.spec.workloads import Workload

Measured = tuple[FioReport, dict[str, str]]
"""The report on a load, in fio's form, and facts on what made it."""


@dataclass
class LoadContext:
    """Shared by the loads of a session."""

    space: ScratchSpace
    leaves: Sequence[Disk]
    options: SessionOptions
    run_folder: RunFolder
    """Working directory of what makes the load."""
    groups: HostGroups
    monitor: MachineMonitor
    offered: Sequence[str]
    """The target's schedulers."""
    warm: str | None = None
    """Name of the command that ran last, whose files the page cache holds."""

    @property
    def data_folder(self) -> str | None:
        """The test files' directory, relative to the working directory; None for devices."""
        folder = self.space.folder
        return None if folder is None else str(folder.relative_to(self.run_folder.path))

    def drop_page_cache(self) -> None:
        """Drops the page cache of the whole machine."""
        page_cache.drop_page_cache()
        self.warm = None


class HostLoad(ABC):
    """The making of loads of one kind on this machine."""

    def __init__(self, context: LoadContext) -> None:
        self._context = context

    @abstractmethod
    def check(self, workloads: Sequence[Workload]) -> list[str]:
        """Makes sure that all of them can run here, and gives warnings; changes nothing.

        Raises:
            BlklabError: for the first thing that is missing or wrong.
        """

    def warnings(self, workload: Workload) -> list[str]:  # noqa: ARG002 - for others
        """Ways in which a load will differ from what it stands for."""
        return []

    def prepare(self, workloads: Sequence[Workload], journal: Journal, announce: Announce) -> None:  # noqa: B027 - few need it
        """Does once, after files are laid out, what must come before all runs.

        Raises:
            BlklabError: if that fails.
        """

    @abstractmethod
    def run(self, cell: Cell, changes: HostChanges | None) -> Measured:
        """Makes the load under the settings in force, with planned changes, if there are any."""

    def judged(self, workload: Workload, events: MachineEvents | None) -> MachineEvents | None:  # noqa: ARG002 - for others
        """Events during a run, without those that cannot be told from the load's own doing."""
        return events

    def cache_commands(self) -> list[str]:
        """The shell commands by which page caches come into their state before a run."""
        return page_cache.commands()

    @abstractmethod
    def commands(self, cell: Cell, changes: HostChanges | None) -> list[str]:
        """The steps of `run` as shell commands, in the working directory."""


class JobLoad(HostLoad):
    """Loads that have the machine to themselves and begin with an empty page cache."""

    def run(self, cell: Cell, changes: HostChanges | None) -> Measured:
        """Drops the page cache and makes the load, while the machine is watched."""
        self._context.drop_page_cache()
        folder = self._context.run_folder.ready()
        with self._context.monitor.monitoring(self._asked_ns(cell.workload)):
            return self._make(cell, folder, changes)

    def _asked_ns(self, workload: Workload) -> int | None:  # noqa: ARG002 - for others
        """The length that a load is to have; None if its I/Os decide."""
        return None

    @abstractmethod
    def _make(self, cell: Cell, folder: Path, changes: HostChanges | None) -> Measured:
        """Makes the load in a working directory."""
