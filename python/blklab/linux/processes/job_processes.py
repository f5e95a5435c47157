"""Processes of a load's jobs, found among the load's own descendants, and their I/O priorities."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import psutil

from blklab.errors import NotRootError, RunFailedError

_PROC = Path("/proc")
_CLASSES = {
    "rt": psutil.IOPRIO_CLASS_RT,
    "be": psutil.IOPRIO_CLASS_BE,
    "idle": psutil.IOPRIO_CLASS_IDLE,
}


def processes_by_inner_number(first: int, wanted: Iterable[int]) -> list[int]:
    """The processes that a PID namespace knows under certain numbers.

    Only descendants of the namespace's first process count, so that no process of anybody else is ever taken
    for one of them.

    Args:
        first: The first process of the namespace, by its number here.
        wanted: Numbers within the namespace.
    """
    numbers = set(wanted)
    return [process for process in _family(first) if _inner_number(process) in numbers]


def set_io_priority(process: int, io_class: str, level: int) -> bool:
    """Gives every thread of a process an I/O priority.

    Args:
        process: Its number.
        io_class: ``rt``, ``be`` or ``idle``.
        level: 0 (served first) to 7; of no meaning in the idle class.

    Returns:
        Whether it had any thread left.

    Raises:
        NotRootError: if we lack the permission.
        RunFailedError: if the kernel kept another priority.
    """
    value = None if io_class == "idle" else level
    found = False
    for thread in _threads(process):
        try:
            task = psutil.Process(thread)
            task.ionice(_CLASSES[io_class], value)
            kept = task.ionice()
        except psutil.NoSuchProcess:
            continue
        except (psutil.AccessDenied, PermissionError) as error:
            raise NotRootError("changing the I/O priority of a job's processes") from error
        if kept.ioclass != _CLASSES[io_class] or (value is not None and kept.value != value):
            raise RunFailedError(f"asked for the I/O priority {io_class}/{value}, the kernel kept {kept}")
        found = True
    return found


def _threads(process: int) -> list[int]:
    try:
        return [int(path.name) for path in (_PROC / str(process) / "task").iterdir()]
    except OSError:
        return []


def _family(first: int) -> Iterator[int]:
    """A process and all its descendants."""
    yield first
    for thread in _threads(first):
        try:
            children = (_PROC / str(first) / "task" / str(thread) / "children").read_text().split()
        except OSError:
            continue
        for child in children:
            yield from _family(int(child))


def _inner_number(process: int) -> int | None:
    """A process's number in its own PID namespace; None if it has ended."""
    try:
        lines = (_PROC / str(process) / "status").read_text().splitlines()
    except OSError:
        return None
    line = next((line for line in lines if line.startswith("NSpid:")), None)
    return None if line is None else int(line.split()[-1])
