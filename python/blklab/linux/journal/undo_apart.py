"""Undoing in a process of its own, on a kernel that has made a mistake.

Switching a disk away from a scheduler runs that scheduler's code: after an oops this can oops as well, which
ends the process, or wait for ever for requests that are lost. Neither may keep blklab from its report, so the
process is none of `multiprocessing`'s, which waits at blklab's exit for one that hangs.
"""

from __future__ import annotations

import json
import os
import select
import signal
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from typing import NoReturn

from blklab.linux.journal.undo import UndoResult
from blklab.linux.processes.signals import ENDING_SIGNALS

LIMIT_S = 60.0
"""Time limit: undoing takes seconds where nothing hangs."""
_PAUSE_S = 0.02


def undone_apart(undo: Callable[[], UndoResult], limit_s: float = LIMIT_S) -> UndoResult:
    """Undoes in a child process.

    Args:
        undo: What the child does.
        limit_s: Time limit in seconds; the child is then left to the kernel.

    Returns:
        The child's result; one failure if the kernel has ended it, or if it is not done within the limit.
    """
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # Python 3.12 warns of locks that other threads hold; the limit covers a child that waits for one.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        _undo_and_exit(undo, writing)
    os.close(writing)
    deadline_s = time.monotonic() + limit_s
    try:
        answer = _read_until(reading, deadline_s)
    finally:
        os.close(reading)
    if answer is None or not _ended(child, deadline_s):
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        _ended(child, time.monotonic() + _PAUSE_S)
        return UndoResult(failures=[f"undoing was not done within {limit_s:g} s: process {child} hangs"])
    if not answer:
        return UndoResult(failures=["the kernel ended the process that was undoing them"])
    return UndoResult(**json.loads(answer))


def _undo_and_exit(undo: Callable[[], UndoResult], writing: int) -> NoReturn:
    try:
        for number in ENDING_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        try:
            result = undo()
        except Exception as error:
            result = UndoResult(failures=[str(error) or type(error).__name__])
        with open(writing, "wb") as pipe:
            pipe.write(json.dumps(asdict(result)).encode())
    finally:
        # Not the exit of Python: its handlers are those of the parent, with the same journal.
        os._exit(0)


def _read_until(pipe: int, deadline_s: float) -> bytes | None:
    """Reads until a process closes its end of a pipe; None if it does not in time."""
    answer = b""
    while (left_s := deadline_s - time.monotonic()) > 0:
        if select.select([pipe], [], [], left_s)[0]:
            part = os.read(pipe, 65536)
            if not part:
                return answer
            answer += part
    return None


def _ended(child: int, deadline_s: float) -> bool:
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if time.monotonic() > deadline_s:
            return False
        time.sleep(_PAUSE_S)
    return True
