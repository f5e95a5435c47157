"""Parts of a device for jobs with several files: partitions that only the kernel knows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from blklab.errors import RefusedError
from blklab.linux.disks.partitions import Partition, add
from blklab.linux.machine.host_change import HostChange, shell_of
from blklab.linux.scratch.layout import EXTENT_ALIGNMENT_BYTES, parts_on_device
from blklab.spec.workloads import Workload

if TYPE_CHECKING:
    from blklab.linux.journal.journal import Journal


def parts_of(
    device: Path, workloads: Iterable[Workload], *, alignment_bytes: int = EXTENT_ALIGNMENT_BYTES
) -> list[Partition]:
    """The partitions that the workloads need, each once.

    Raises:
        RefusedError: if two workloads divide the device differently.
    """
    wanted: dict[Partition, Workload] = {}
    for workload in workloads:
        for part in parts_on_device(workload, alignment_bytes=alignment_bytes):
            place = Partition(str(device), part.number, part.start_bytes, part.length_bytes)
            wanted.setdefault(place, workload)
    in_order = sorted(wanted, key=lambda place: (place.start_bytes, place.number))
    for before, after in pairwise(in_order):
        if after.start_bytes < before.end_bytes or after.number == before.number:
            raise RefusedError(
                f"{wanted[before].name} and {wanted[after].name} divide {device} differently for their files",
                hint="run them one after the other, or name a directory on that disk",
            )
    return in_order


@dataclass(frozen=True)
class PartAddition(HostChange):
    """A partition, until the journal ends."""

    part: Partition
    journal: Journal | None
    """None in a dry run."""

    def make(self) -> None:
        """Adds it, unless it is there.

        Raises:
            NotRootError, RequirementError: if the kernel refuses.
        """
        if self.journal is not None:
            add(self.journal, self.part)

    def shell(self) -> list[str]:
        """An ``addpart``."""
        start, length = (number // 512 for number in (self.part.start_bytes, self.part.length_bytes))
        return [f"addpart {self.part.device} {self.part.number} {start} {length}"]


def add_parts(journal: Journal | None, parts: Sequence[Partition]) -> None:
    """Adds the partitions until the journal ends; without a journal nothing runs, and nothing is added."""
    for part in parts:
        PartAddition(part, journal).make()


def commands_for(parts: Iterable[Partition]) -> list[str]:
    """The same as shell commands."""
    return shell_of(PartAddition(part, None) for part in parts)
