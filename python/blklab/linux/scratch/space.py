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
    """Somewhere that jobs can work."""

    @property
    def read_only(self) -> bool:
        """Whether fio is to be kept from writing."""

    @property
    def folder(self) -> Path | None:
        """The folder of the regions' files; nothing for devices."""

    @property
    def device(self) -> Path | None:
        """The device itself; nothing for files."""

    def check(self, workloads: Sequence[Workload]) -> None:
        """Makes sure that the workloads can work here; nothing is changed."""

    def prepare(self, workloads: Sequence[Workload], announce: Announce) -> None:
        """Lays out what the workloads need."""

    def regions(self, workload: Workload) -> list[JobRegions]:
        """Where each clone of each job works."""

    def commands(self, workloads: Sequence[Workload]) -> list[str]:
        """What `prepare` does, as shell commands."""

    def close(self) -> None:
        """Frees what is held."""
