"""Files in a scratch directory on the file system under test."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from blklab.linux.scratch.data_files import LaidOutFiles, check_space, write_error
from blklab.linux.scratch.layout import JobRegions, files_in_directory, regions_in_directory
from blklab.linux.scratch.space import Announce
from blklab.quantities.units import format_bytes
from blklab.spec.workloads import Workload

if TYPE_CHECKING:
    from blklab.linux.journal.journal import Journal


class ScratchDirectory:
    """Files in a run's scratch directory, which the journal removes."""

    read_only = False
    device = None

    def __init__(self, directory: Path, run_id: str, journal: Journal | None) -> None:
        self._directory = directory
        self._journal = journal
        self.folder: Path = directory.resolve() / f".blklab-{run_id}"
        self._files: LaidOutFiles | None = None

    def check(self, workloads: Sequence[Workload]) -> None:
        """Checks sizes and free space."""
        check_space(self._directory, sum(self._missing(workloads).values()))

    def prepare(self, workloads: Sequence[Workload], announce: Announce) -> None:
        """Lays out the files that all workloads share, as far as they are not there."""
        lengths = self._missing(workloads)
        total = sum(lengths.values())
        check_space(self._directory, total)
        if self._journal is None:
            raise RuntimeError("a dry run lays out no files")
        if lengths:
            announce(f"laying out {format_bytes(total)} of test files in {self.folder}")
        if self._files is None:
            try:
                self._journal.own_directory(self.folder)
            except OSError as error:
                raise write_error(self.folder, error) from error
            self._files = LaidOutFiles(self.folder)
        self._files.lay_out(lengths)

    def _missing(self, workloads: Sequence[Workload]) -> dict[str, int]:
        lengths = files_in_directory(workloads)
        return lengths if self._files is None else self._files.missing(lengths)

    def file_lengths(self, workloads: Sequence[Workload]) -> dict[str, int]:
        """Lengths in bytes of the files that the workloads share, by name."""
        return files_in_directory(workloads)

    def regions(self, workload: Workload) -> list[JobRegions]:
        """Regions in files of the scratch directory."""
        return regions_in_directory(workload)

    def commands(self, workloads: Sequence[Workload]) -> list[str]:
        """Creation of the directory and its files."""
        lines = [f"mkdir -p -m 700 {shlex.quote(str(self.folder))}"]
        for name, length in files_in_directory(workloads).items():
            lines.append(f"head -c {length} /dev/urandom > {shlex.quote(str(self.folder / name))}")
        return [*lines, f"sync -f {shlex.quote(str(self.folder))}"]

    def close(self) -> None:
        """Holds nothing; the journal removes the directory."""
