"""Runs load generators so that none of their tasks outlives blklab, however blklab ends."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from blklab.errors import RunFailedError, reason_of
from blklab.linux.processes.signals import shielded

_DYING_S = 30
"""Time limit for killed processes to disappear: their I/O must complete first."""

# setpriv asks the kernel to kill the program when blklab dies. If blklab died before that took effect, the
# shell sees another parent and starts nothing. The program's own tasks die with it: they run in a PID
# namespace, which ends with its first process.
_ONLY_UNDER_PARENT = '[ "$PPID" = "$0" ] && exec "$@"'
_NAMESPACE = ("unshare", "--pid", "--fork", "--kill-child")

_under_way: set[subprocess.Popen[str]] = set()
_mutex = threading.Lock()

REQUIRED_PROGRAMS = ("setpriv", "unshare")
"""Programs of util-linux that every load process needs."""


@dataclass(frozen=True)
class EndedProcess:
    """A load process that has ended."""

    output: str
    """Its standard output and standard error."""
    returncode: int


@dataclass
class LoadProcess:
    """A program that runs; `load_process` ends it."""

    _process: subprocess.Popen[str]
    _limit_s: float | None
    _too_long: str

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.poll() is None

    @property
    def program(self) -> int | None:
        """PID of the program, the first process of its namespace; None before its start and after its end."""
        return next(iter(_children(self._process.pid)), None)

    def interrupt(self) -> None:
        """Sends SIGINT to the program; only a handler receives it in the first process of a namespace."""
        program = self.program
        if program is not None:
            with suppress(ProcessLookupError):
                os.kill(program, signal.SIGINT)

    def wait(self) -> EndedProcess:
        """Waits until it ends.

        Raises:
            RunFailedError: if it exceeds its time limit.
        """
        try:
            output, _ = self._process.communicate(timeout=self._limit_s)
        except subprocess.TimeoutExpired as error:
            raise RunFailedError(
                self._too_long, hint="the device may be stuck: look at the kernel's log (dmesg)"
            ) from error
        return EndedProcess(output, self._process.returncode)


@contextmanager
def load_process(
    argv: Sequence[str],
    folder: Path,
    *,
    limit_s: float | None,
    too_long: str,
    environment: Mapping[str, str] | None = None,
) -> Iterator[LoadProcess]:
    """Starts a program in a directory; none of its tasks is left when the context is closed.

    Args:
        argv: Program and arguments.
        folder: Its working directory.
        limit_s: Time limit of `LoadProcess.wait`; None for no limit.
        too_long: The error message if it exceeds the limit.
        environment: Its environment; None for blklab's own.

    Raises:
        RunFailedError: if its directory is gone, or it cannot be killed.
    """
    wrapper = [
        "setpriv",
        "--pdeathsig",
        "KILL",
        "sh",
        "-c",
        _ONLY_UNDER_PARENT,
        str(os.getpid()),
        *_namespace(),
    ]
    process: subprocess.Popen[str] | None = None
    try:
        with shielded(), _directory_is_there(folder):
            process = subprocess.Popen(
                [*wrapper, *argv],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                # Ctrl-C in a terminal must reach only us: we decide when the program ends.
                start_new_session=True,
            )
            with _mutex:
                _under_way.add(process)
        yield LoadProcess(process, limit_s, too_long)
    finally:
        if process is not None:
            with shielded():
                with _mutex:
                    _under_way.discard(process)
                _end(process, argv[0])


def kill_loads() -> None:
    """Kills all load processes that are under way, from any thread; a wait for one then returns."""
    with _mutex:
        for process in _under_way:
            _kill(process)


@contextmanager
def _directory_is_there(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        # subprocess names the directory if it is the directory that is missing.
        if error.filename != str(folder):
            raise
        raise RunFailedError(f"the directory {folder} is gone: {reason_of(error)}") from error


def _namespace() -> tuple[str, ...]:
    """The program that makes the namespace; an ordinary user needs a user namespace for that."""
    first, *options = _NAMESPACE
    return _NAMESPACE if os.geteuid() == 0 else (first, "--user", "--map-root-user", *options)


def run_load_process(
    argv: Sequence[str], folder: Path, *, limit_s: float | None, too_long: str
) -> EndedProcess:
    """Runs a program in a directory until it ends; none of its tasks is left when this returns or raises.

    Args:
        argv: Program and arguments.
        folder: Its working directory.
        limit_s: Time limit; None for no limit.
        too_long: The error message if it exceeds the limit.

    Raises:
        RunFailedError: if it exceeds the limit, or cannot be killed.
    """
    with load_process(argv, folder, limit_s=limit_s, too_long=too_long) as process:
        return process.wait()


def _end(process: subprocess.Popen[str], name: str) -> None:
    """Kills the program and all its tasks, and waits until they are gone."""
    if process.poll() is None:
        _kill(process)
        try:
            process.wait(timeout=_DYING_S)
        except subprocess.TimeoutExpired as error:
            raise RunFailedError(
                f"{Path(name).name} (process {process.pid}) cannot be killed: the device does not answer",
                hint="look at the kernel's log (dmesg); `blklab restore` restores the settings afterwards",
            ) from error
    if process.stdout is not None:
        process.stdout.close()


def _kill(process: subprocess.Popen[str]) -> None:
    # The namespace's first process takes the others with it and is reaped only after all of them.
    first = _children(process.pid)
    for pid in first or [process.pid]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
