"""Scratch space: what a load reads and writes. One file beside this one for each kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from blklab.linux.scratch.layout import JobRegions
from blklab.spec.workloads import Workload

Announce = Callable[[str], None]
"""Takes a line for people about the current step (laying out files …)."""


class ScratchSpace(Protocol):
    """The files or the device that a load works on."""

    @property
    def read_only(self) -> bool:
        """Whether fio must not write."""

    @property
    def folder(self) -> Path | None:
        """The directory of the regions' files, where nobody else can rename; None for devices."""

    @property
    def place(self) -> Path | None:
        """A directory of the file system that has the folder, which may not exist yet; None for devices."""

    @property
    def device(self) -> Path | None:
        """The device itself; None for files."""

    def check(self, workloads: Sequence[Workload]) -> None:
        """Makes sure that the workloads can run here; changes nothing."""

    def prepare(self, workloads: Sequence[Workload], announce: Announce) -> None:
        """Lays out the data that the workloads need."""

    def regions(self, workload: Workload) -> list[JobRegions]:
        """The region of each clone of each job."""

    def commands(self, workloads: Sequence[Workload]) -> list[str]:
        """The steps of `prepare` as shell commands."""

    def let_others_pass(self) -> None:
        """Lets other users pass through the folder, once it exists. A device has none."""

    def close(self) -> None:
        """Releases whatever the space holds."""
