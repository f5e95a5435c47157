"""Programs that make load: none of their tasks outlives us, however we end."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from blklab.errors import RunFailedError
from blklab.linux.processes.signals import shielded

_DYING_S = 30
"""How long killed processes may take to go away: their I/O must come back first."""

# setpriv has the kernel kill its successor when blklab dies. If blklab died before that was arranged, the
# shell sees another parent and starts nothing. The program's own tasks go with it: they live in a process
# namespace that ends with its first process.
_ONLY_UNDER_PARENT = '[ "$PPID" = "$0" ] && exec "$@"'
_NAMESPACE = ("unshare", "--pid", "--fork", "--kill-child")

NEEDED = ("setpriv", "unshare")
"""Programs of util-linux without which nothing is started."""


@dataclass(frozen=True)
class EndedProcess:
    """How a program ended."""

    said: str
    """Both its outputs."""
    returncode: int


def run_load_process(
    argv: Sequence[str], folder: Path, *, limit_s: float | None, too_long: str
) -> EndedProcess:
    """Runs a program in a folder and waits for its end; nothing of it is left when this returns or raises.

    Args:
        argv: Program and arguments.
        folder: Where it runs.
        limit_s: How long it may take; nothing: as long as it wants.
        too_long: What is said of a program that takes longer.

    Raises:
        RunFailedError: if it takes longer, or cannot be killed.
    """
    guard = ["setpriv", "--pdeathsig", "KILL", "sh", "-c", _ONLY_UNDER_PARENT, str(os.getpid()), *_NAMESPACE]
    process: subprocess.Popen[str] | None = None
    try:
        with shielded():
            process = subprocess.Popen(
                [*guard, *argv],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                # Ctrl-C in a terminal must reach us alone: we decide when the program ends.
                start_new_session=True,
            )
        said, _ = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired as error:
        raise RunFailedError(
            too_long, hint="the device may hang: look at the kernel's log (dmesg)"
        ) from error
    finally:
        if process is not None:
            with shielded():
                _end(process, argv[0])
    return EndedProcess(said, process.returncode)


def _end(process: subprocess.Popen[str], name: str) -> None:
    """Makes sure that the program and all its tasks are gone."""
    if process.poll() is None:
        # The namespace's first process takes the others along and is reaped only after all of them.
        first = _children(process.pid)
        for pid in first or [process.pid]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            process.wait(timeout=_DYING_S)
        except subprocess.TimeoutExpired as error:
            raise RunFailedError(
                f"{Path(name).name} (process {process.pid}) cannot be killed: the device does not answer",
                hint="look at the kernel's log (dmesg); `blklab restore` puts settings back afterwards",
            ) from error
    if process.stdout is not None:
        process.stdout.close()


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
