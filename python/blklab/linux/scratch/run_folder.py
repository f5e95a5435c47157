"""A run's own directory in memory, where nobody else can rename: fio works in it, and has its data below."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from blklab.linux.machine.host_change import HostChange
from blklab.linux.scratch.changes import BindMount, HeldFolder, OwnMount, PlainFolder

if TYPE_CHECKING:
    from blklab.linux.directories.held_directory import HeldDirectory
    from blklab.linux.journal.journal import Journal

_PARENTS = (Path("/run"), Path("/tmp"))  # noqa: S108 - our directory in it is new, with mode 700
PASSABLE = 0o711
"""Mode of directories that other users may pass through: a command may start programs for them."""


class RunFolder:
    """The directory ``/run/blklab-RUN``; the journal removes it."""

    def __init__(self, run_id: str, journal: Journal | None) -> None:
        """Changes nothing.

        Args:
            run_id: Names it.
            journal: Records it; None for a dry run.
        """
        parent = next(folder for folder in _PARENTS if folder.is_dir())
        self.path: Path = parent / f"blklab-{run_id}"
        self._journal = journal
        self.change = HeldFolder(self.path, journal)
        """Makes it."""
        self._is_made = False

    def ready(self) -> Path:
        """Its path; makes it on the first call.

        Raises:
            RequirementError: if something has its name already.
        """
        if not self._is_made:
            self.change.make()
            self._is_made = True
        return self.path

    def let_others_pass(self) -> None:
        """Lets other users pass through it."""
        self._made.chmod(PASSABLE)

    def mounting(self, folder: HeldFolder, name: str) -> list[HostChange]:
        """The changes that mount a directory below it, where nobody else can rename, once it is there.

        Args:
            folder: One of blklab's own.
            name: Of the mount point.
        """
        point = self.path / name
        return [PlainFolder(point), OwnMount(BindMount(folder, point), point, self._journal)]

    @property
    def _made(self) -> HeldDirectory:
        self.ready()
        return self.change.held
