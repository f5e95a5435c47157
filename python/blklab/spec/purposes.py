"""Shipped workloads by what a machine is for: a database, a desktop, virtual machines, files.

A workload names its purposes in a comment at its head, as in ``; for: database, virtual-machines``.
"""

from __future__ import annotations

import re
from pathlib import Path

from blklab.errors import UnknownNameError, did_you_mean
from blklab.spec.workloads import shipped_commands, shipped_workloads

PURPOSES = {
    "database": "transactions: a log that must be durable, small reads and writes of tables",
    "desktop": "a person who waits: programs start, trees are searched, while others write",
    "virtual-machines": "guests of a host, each with small I/O of its own beside the others'",
    "files": "large files read and written as streams, several at once",
}
"""Purposes with a line about each."""
_LINE = re.compile(r"^[;#]\s*for\s*:\s*(.*?)\s*$", re.MULTILINE)


def purposes_of(text: str) -> tuple[str, ...]:
    """The purposes that the head of a workload names."""
    found = _LINE.search(text)
    return () if found is None else tuple(name.strip() for name in found[1].split(","))


def workloads_for(purpose: str) -> list[str]:
    """Names of the shipped workloads for a purpose: job files first, then programs.

    Raises:
        UnknownNameError: if there is no such purpose.
    """
    if purpose not in PURPOSES:
        raise UnknownNameError(
            f"there are no workloads for {purpose!r}",
            hint=did_you_mean(purpose, list(PURPOSES)) or f"known are {', '.join(PURPOSES)}",
        )
    return [name for name, path in _shipped().items() if purpose in purposes_of(path.read_text("utf-8"))]


def _shipped() -> dict[str, Path]:
    return shipped_workloads() | shipped_commands()
