"""Weights of control groups on disks where nothing honours them.

``io.bfq.weight`` is bfq's (block/bfq-cgroup.c), ``io.weight`` io.cost's under any scheduler
(block/blk-iocost.c). Neither honours the other's, and mq-deadline, kyber and none have no weights. The kernel
takes all of them without a word. systemd's ``IOWeight=`` writes both.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from blklab.linux.disks.disk import Disk
from blklab.linux.doctor.finding import Finding
from blklab.linux.machine.kernel_files import text_or_empty
from blklab.quantities.formatting import count_of

CGROUPS = Path("/sys/fs/cgroup")
OF_COST, OF_BFQ = "io.weight", "io.bfq.weight"
_DEFAULTS = ("", "100", "default 100")
_MOST_GROUPS = 5_000
_MOST_NAMED = 3


def check(disks: Sequence[tuple[Disk, str | None]], root: Path = CGROUPS) -> list[Finding]:
    """Looks for weights that were set, on disks without anything that honours them.

    Args:
        disks: The machine's disks, each with its active scheduler.
        root: Mount point of control groups v2.
    """
    if not (root / "cgroup.controllers").exists():
        return []
    costed = {
        line.split()[0]
        for line in text_or_empty(root / "io.cost.qos").splitlines()
        if "enable=1" in line.split()
    }
    groups: dict[str, list[str]] = {}
    deaf: dict[str, None] = {}
    for group, files in _weighted(root):
        for disk, scheduler in disks:
            honoured = (OF_BFQ in files and scheduler == "bfq") or (
                OF_COST in files and disk.device_number in costed
            )
            if not honoured:
                groups[group] = files
                deaf[f"{disk.name} ({scheduler or 'none'})"] = None
    if not groups:
        return []
    named = [f"{' and '.join(files)} of {group}" for group, files in groups.items()]
    more = f" and of {count_of(len(named) - _MOST_NAMED, 'more group')}" if len(named) > _MOST_NAMED else ""
    return [
        Finding(
            "group weights",
            "lacking",
            f"{', '.join(named[:_MOST_NAMED])}{more}: no effect on {', '.join(deaf)}",
            f"{OF_BFQ} needs the scheduler bfq (blklab apply bfq DISK), {OF_COST} needs io.cost "
            "(blklab iocost DISK)",
        )
    ]


def _weighted(root: Path) -> Iterator[tuple[str, list[str]]]:
    """Groups with a weight other than the default, and the names of its files."""
    for number, (folder, below, files) in enumerate(os.walk(root)):
        if number >= _MOST_GROUPS:
            return
        below.sort()
        changed = [
            name
            for name in (OF_COST, OF_BFQ)
            if name in files and text_or_empty(Path(folder, name)) not in _DEFAULTS
        ]
        if changed:
            yield f"/{Path(folder).relative_to(root)}", changed
