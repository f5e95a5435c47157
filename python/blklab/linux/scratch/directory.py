"""Files in a scratch directory on the file system under test.

The directory is reached by a mount below `/run` only: the owner of the one above can rename it, and put
anything in its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from blklab.linux.machine.host_change import shell_of
from blklab.linux.scratch.changes import HeldFolder, LaidOutFiles
from blklab.linux.scratch.data_files import check_space
from blklab.linux.scratch.layout import JobRegions, files_in_directory, regions_in_directory
from blklab.linux.scratch.run_folder import PASSABLE, RunFolder
from blklab.linux.scratch.space import Announce
from blklab.quantities.units import format_bytes
from blklab.spec.workloads import Workload

if TYPE_CHECKING:
    from blklab.linux.journal.journal import Journal


DATA_NAME = "data"
"""Where the run's directory has the test files, so that paths need no quoting."""


class ScratchDirectory:
    """Files in a run's scratch directory, which the journal removes."""

    read_only = False
    device = None

    def __init__(self, directory: Path, run_id: str, run_folder: RunFolder, journal: Journal | None) -> None:
        """Changes nothing.

        Args:
            directory: The target.
            run_id: Names the scratch directory.
            run_folder: The run's own directory.
            journal: Records what is made; None for a dry run.
        """
        self.place: Path = directory.resolve()
        self._journal = journal
        self._run_folder = run_folder
        self._scratch = self.place / f".blklab-{run_id}"
        self.folder: Path = run_folder.path / DATA_NAME
        self._made = HeldFolder(self._scratch, journal)
        self._mounting = run_folder.mounting(self._made, DATA_NAME)
        self._is_made = False
        self._files = LaidOutFiles(self.folder)

    def check(self, workloads: Sequence[Workload]) -> None:
        """Checks sizes and free space."""
        check_space(self.place, sum(self._missing(workloads).values()))

    def prepare(self, workloads: Sequence[Workload], announce: Announce) -> None:
        """Lays out the files that all workloads share, as far as they are not there."""
        lengths = self._missing(workloads)
        total = sum(lengths.values())
        check_space(self.place, total)
        if self._journal is None:
            raise RuntimeError("a dry run lays out no files")
        if lengths:
            announce(f"laying out {format_bytes(total)} of test files in {self._scratch}")
        if not self._is_made:
            self._made.make()
            self._run_folder.ready()
            for change in self._mounting:
                change.make()
            self._is_made = True
        self._files.lay_out(lengths)

    def let_others_pass(self) -> None:
        """Lets other users pass through the directory."""
        if not self._is_made:
            raise RuntimeError("it has not been made")
        self._made.held.chmod(PASSABLE)

    def _missing(self, workloads: Sequence[Workload]) -> dict[str, int]:
        return self._files.missing(files_in_directory(workloads))

    def file_lengths(self, workloads: Sequence[Workload]) -> dict[str, int]:
        """Lengths in bytes of the files that the workloads share, by name."""
        return files_in_directory(workloads)

    def regions(self, workload: Workload) -> list[JobRegions]:
        """Regions in files of the scratch directory."""
        return regions_in_directory(workload)

    def commands(self, workloads: Sequence[Workload]) -> list[str]:
        """Creation of the directory, which is mounted where nobody else can rename, and its files."""
        making = shell_of([self._made, self._run_folder.change, *self._mounting])
        return [*making, *self._files.commands(files_in_directory(workloads))]

    def close(self) -> None:
        """Holds nothing; the journal removes the directory."""
