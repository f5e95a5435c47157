"""A guest kernel's process tree, which never outlives us: a supervisor holds it together."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path

from blklab.errors import RequirementError, RunFailedError
from blklab.guests import supervisor
from blklab.guests.boot import KERNEL
from blklab.guests.scratch import GuestFolder
from blklab.linux.processes.signals import shielded

_DYING_S = 30
"""Time limit for killed processes to disappear."""
_ASK_AGAIN_S = 0.2
_SUPERVISOR = Path(supervisor.__file__).resolve()


class GuestProcess:
    """A running guest. `end` must be called in every case."""

    def __init__(self, arguments: Sequence[str], folder: GuestFolder, processor: int) -> None:
        """Starts a guest in its directory, on the given processor of this machine.

        Args:
            arguments: The kernel's command line without the program.
            folder: Its directory.
            processor: Number of the processor.

        Raises:
            RunFailedError: if this machine cannot start another process.
        """
        # Isolated and without site: it loads none of the user's files, and starts in milliseconds.
        argv = [sys.executable, "-I", "-S", str(_SUPERVISOR), str(os.getpid()), str(processor)]
        argv += [f"./{KERNEL}", *arguments]
        self._log = folder.log.open("w+b")
        try:
            # Signals become exceptions only in the main thread, where they must not interrupt the start.
            with shielded() if threading.current_thread() is threading.main_thread() else nullcontext():
                self._process = subprocess.Popen(
                    argv,
                    cwd=folder.path,
                    stdin=subprocess.DEVNULL,
                    stdout=self._log,
                    stderr=subprocess.STDOUT,
                    # Ctrl-C in a terminal must reach only us: we decide when a guest ends.
                    start_new_session=True,
                )
        except OSError as error:
            self._log.close()
            raise RunFailedError(f"a guest cannot be started: {error.strerror}") from error
        self._descriptor: int | None = None
        with suppress(AttributeError, OSError):  # Linux before 5.3
            self._descriptor = os.pidfd_open(self._process.pid)

    def wait(self, timeout_s: float) -> int | None:
        """Waits for the guest to end.

        Returns:
            The exit code of the kernel, or 128 plus a signal's number; None if it is still running.

        Raises:
            RequirementError: if this machine refuses something that a guest needs.
        """
        if self._descriptor is not None:
            # Popen.wait with a timeout polls, which delays the end of a guest by up to 50 ms.
            poll = select.poll()
            poll.register(self._descriptor, select.POLLIN)
            if not poll.poll(timeout_s * 1000):
                return None
        try:
            code = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
        if code == supervisor.CANNOT_START:
            raise RequirementError(
                f"this machine does not allow guest kernels to run: {self.read_log().strip()}",
                hint="a container's seccomp profile may forbid it (ptrace, personality)",
            )
        return code

    def read_log(self) -> str:
        """The guest's log so far, even if its directory is gone."""
        return os.pread(self._log.fileno(), self.log_bytes, 0).decode(errors="replace")

    @property
    def log_bytes(self) -> int:
        """Size of the log so far."""
        return os.fstat(self._log.fileno()).st_size

    def kill(self) -> None:
        """Asks the supervisor to kill the guest; any thread may call it, even after the guest has ended."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGUSR1)  # does nothing once the process has been reaped

    def end(self) -> None:
        """Makes sure that no process of the guest is left.

        Raises:
            RunFailedError: if it cannot be killed.
        """
        deadline_s = time.monotonic() + _DYING_S
        try:
            while self._process.poll() is None:
                if time.monotonic() > deadline_s:
                    raise RunFailedError(f"the guest under process {self._process.pid} cannot be killed")
                self.kill()
                with suppress(RequirementError):
                    self.wait(_ASK_AGAIN_S)
        finally:
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None
            self._log.close()
