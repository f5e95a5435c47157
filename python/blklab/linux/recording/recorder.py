"""Runs a recording until its time is over, its command has ended, or a signal arrives."""

from __future__ import annotations

import math
import os
import select
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from blklab import _core
from blklab.errors import (
    BlklabError,
    InterruptedRunError,
    NotRootError,
    RequirementError,
    SpaceError,
)
from blklab.linux.processes.signals import shielded
from blklab.linux.recording.command import end_command, start_command
from blklab.recordings.facts import Tally

CHECK_SECONDS = 0.1
"""Time between two looks at the recorder's thread, which takes what the kernel has by itself."""
_LOOK_SECONDS = 0.02
"""Time between two looks whether a command has ended, where the kernel does not tell."""


@dataclass(frozen=True)
class Recorded:
    """A recording that is finished."""

    capture: str
    """``bpf`` or ``tracefs``."""
    missing: list[str]
    tally: Tally
    returncode: int | None
    """Of the command; None if there was none."""
    interrupted: InterruptedRunError | None
    """The signal that ended the recording."""


def record(request: str, command: Sequence[str] = (), *, seconds: float | None = None) -> Recorded:
    """Records until the command has ended, the time is over, or a signal arrives; the file is whole then.

    A command that a signal or an error leaves running is ended (`end_command`).

    Args:
        request: As `recording_request` gives it.
        command: A program to start once the recording runs, with its arguments.
        seconds: The longest duration; None for no limit.

    Raises:
        NotRootError: if root is missing.
        RequirementError: if this kernel cannot record.
        MissingToolError: if the command cannot be started.
        SpaceError: if the file cannot be written.
    """
    recording = _begun(request)
    process: subprocess.Popen[bytes] | None = None
    tally: Tally | None = None
    interrupted: InterruptedRunError | None = None
    end = None if seconds is None else time.monotonic() + seconds
    try:
        # Only the first signal raises, so one `except` for all steps leaves no gap between them. The shield
        # keeps a program that has just been started, or the tally of a file that is whole, from being lost.
        try:
            if command:
                with shielded():
                    process = start_command(command)
            _watch(recording, process, end)
            with shielded():
                tally = _finished(recording)
            if process is not None:
                process.wait()  # for a command that runs longer than the recording
        except InterruptedRunError as error:
            interrupted = error
        if tally is None:
            tally = _finished(recording)
    except BaseException:
        with suppress(_core.CaptureError):
            recording.finish()
        if process is not None:
            end_command(process)
        raise
    if process is not None and interrupted is not None:
        end_command(process, interrupted.signal_number)
    returncode = None if process is None else process.poll()
    return Recorded(recording.capture, recording.missing, tally, returncode, interrupted)


@contextmanager
def recording_of_a_moment(request: str) -> Iterator[None]:
    """Records meanwhile. The file is whole then.

    Raises:
        NotRootError: if root is missing.
        RequirementError: if this kernel cannot record.
        SpaceError: if the file cannot be written.
    """
    recording = _begun(request)
    try:
        yield
    finally:
        try:
            recording.finish()
        except _core.CaptureError as error:
            raise translated(error) from error


def _begun(request: str) -> _core.Recording:
    try:
        return _core.Recording(request)
    except _core.CaptureError as error:
        raise translated(error) from error


def _watch(recording: _core.Recording, process: subprocess.Popen[bytes] | None, end: float | None) -> None:
    """Returns once the command has ended, or at the monotonic time `end`."""
    try:
        while (process is None or process.poll() is None) and (end is None or time.monotonic() < end):
            recording.check()
            left = CHECK_SECONDS if end is None else min(CHECK_SECONDS, end - time.monotonic())
            _wait(process, max(0, left))
    except _core.CaptureError as error:
        raise translated(error) from error


def _finished(recording: _core.Recording) -> Tally:
    try:
        return Tally.model_validate_json(recording.finish())
    except _core.CaptureError as error:
        raise translated(error) from error


def _wait(process: subprocess.Popen[bytes] | None, seconds: float) -> None:
    """Returns after this time, or once the process has ended."""
    if process is None:
        time.sleep(seconds)
        return
    try:
        # Unlike `Popen.wait`, which looks again and again, this takes no processor from the command.
        descriptor = os.pidfd_open(process.pid)
    except OSError:  # before Linux 5.3
        time.sleep(min(_LOOK_SECONDS, seconds))
        return
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        poll.poll(math.ceil(1e3 * seconds))
    finally:
        os.close(descriptor)


def translated(error: _core.CaptureError) -> BlklabError:
    """The error for people."""
    match error.kind:
        case "not_permitted":
            return NotRootError(error.message, hint="run with sudo, outside of a container")
        case "output":
            return SpaceError(error.message)
        case _:
            return RequirementError(error.message)
