"""Parts of a device for jobs with several files: partitions that only the kernel knows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from blklab.errors import RefusedError
from blklab.linux.disks.partitions import Partition, add
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


def add_parts(journal: Journal | None, parts: Sequence[Partition]) -> None:
    """Adds the partitions until the journal ends; without a journal nothing runs, and nothing is added."""
    if journal is not None:
        for part in parts:
            add(journal, part)


def commands_for(parts: Iterable[Partition]) -> list[str]:
    """The same as shell commands."""
    return [
        f"addpart {part.device} {part.number} {part.start_bytes // 512} {part.length_bytes // 512}"
        for part in parts
    ]
