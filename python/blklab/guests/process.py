"""A guest kernel that never outlives us: we see its supervisor, which holds its processes together."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
import time
from contextlib import nullcontext, suppress
from pathlib import Path

from blklab.errors import RequirementError, RunFailedError
from blklab.guests import supervisor
from blklab.guests.boot import KERNEL, Boot
from blklab.guests.scratch import GuestFolder
from blklab.linux.processes.signals import shielded

_DYING_S = 30
"""How long killed processes may take to go away."""
_ASK_AGAIN_S = 0.2
_SUPERVISOR = Path(supervisor.__file__).resolve()


class GuestProcess:
    """A running guest. `end` must be called, whatever happens."""

    def __init__(self, boot: Boot, folder: GuestFolder, processor: int) -> None:
        """Starts a guest in its folder, on that processor of this machine.

        Raises:
            RunFailedError: if this machine cannot start another process.
        """
        # Isolated and without site: no file of the person's gets in, and it starts in milliseconds.
        argv = [sys.executable, "-I", "-S", str(_SUPERVISOR), str(os.getpid()), str(processor)]
        argv += [f"./{KERNEL}", *boot.arguments()]
        self._log = folder.log.open("w+b")
        try:
            # Ending signals become exceptions in the main thread only: there the start must not be torn.
            with shielded() if threading.current_thread() is threading.main_thread() else nullcontext():
                self._process = subprocess.Popen(
                    argv,
                    cwd=folder.path,
                    stdin=subprocess.DEVNULL,
                    stdout=self._log,
                    stderr=subprocess.STDOUT,
                    # Ctrl-C in a terminal must reach us alone: we decide when a guest ends.
                    start_new_session=True,
                )
        except OSError as error:
            self._log.close()
            raise RunFailedError(f"a guest cannot be started: {error.strerror}") from error
        self._descriptor: int | None = None
        with suppress(AttributeError, OSError):  # Linux before 5.3
            self._descriptor = os.pidfd_open(self._process.pid)

    @property
    def supervisor_pid(self) -> int:
        """Process that holds the guest's processes together."""
        return self._process.pid

    def wait(self, timeout_s: float) -> int | None:
        """Waits for the end of the guest.

        Returns:
            The exit code of the kernel, 128 plus a signal's number, or nothing if it still runs.

        Raises:
            RequirementError: if this machine refuses something that a guest needs.
        """
        if self._descriptor is not None:
            # Popen.wait with a timeout would look every now and then, which costs a guest up to 50 ms.
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
                f"this machine does not let guest kernels run: {self.read_log().strip()}",
                hint="a container's seccomp profile may forbid it (ptrace, personality)",
            )
        return code

    def read_log(self) -> str:
        """What the guest has said so far, even if its folder is gone."""
        return os.pread(self._log.fileno(), self.log_bytes, 0).decode(errors="replace")

    @property
    def log_bytes(self) -> int:
        """How much it has said so far."""
        return os.fstat(self._log.fileno()).st_size

    def kill(self) -> None:
        """Begins to end the guest; any thread may call it, also for a guest that has ended."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGUSR1)  # does nothing once the process was waited for

    def end(self) -> None:
        """Makes sure that nothing of the guest runs any more.

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
