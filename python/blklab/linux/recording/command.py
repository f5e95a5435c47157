"""The program that is recorded: its start, and its end if the recording ends before it does."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Sequence
from typing import Final

import psutil

from blklab.errors import MissingToolError, reason_of

_CTRL_C_SECONDS: Final = 0.5
"""For a command that Ctrl-C at the terminal has reached as well."""
GRACE_SECONDS: Final = 5.0
"""From SIGTERM to SIGKILL."""


def start_command(command: Sequence[str]) -> subprocess.Popen[bytes]:
    """Starts a program with its arguments, in blklab's own process group, so that it may use the terminal.

    Raises:
        MissingToolError: if it cannot be started.
    """
    try:
        return subprocess.Popen(list(command))
    except OSError as error:
        raise MissingToolError(f"{command[0]}: cannot be started: {reason_of(error)}") from error
    except ValueError as error:  # a NUL byte
        raise MissingToolError(f"{command[0]!r}: cannot be started: {error}") from error


def end_command(process: subprocess.Popen[bytes], signal_number: int | None = None) -> None:
    """Ends a program and those that it has started: SIGTERM, and after 5 s SIGKILL.

    Args:
        process: The program, which may have ended.
        signal_number: The signal that has ended blklab, if one has. SIGINT comes from a terminal as a rule,
            which sends it to the program too, so the program gets half a second to end by itself.
    """
    if signal_number == signal.SIGINT and _has_ended(process, _CTRL_C_SECONDS):
        return
    if process.poll() is not None:
        return
    family = _family(process)
    end = time.monotonic() + GRACE_SECONDS
    for member in family:
        _send(member, signal.SIGTERM)
    # Not by psutil: it would take the exit code away from `process`.
    if not _has_ended(process, GRACE_SECONDS):
        process.kill()
    _, alive = psutil.wait_procs(family[1:], timeout=max(0.0, end - time.monotonic()))
    for member in alive:
        _send(member, signal.SIGKILL)
    process.wait()


def _has_ended(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _family(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """The program first, then those below it."""
    try:
        first = psutil.Process(process.pid)
        return [first, *first.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _send(process: psutil.Process, number: signal.Signals) -> None:
    """Sends a signal; psutil sees by the start time whether another process has got the number."""
    try:
        process.send_signal(number)
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return
