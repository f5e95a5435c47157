"""The guests of a session, each from boot to answer."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from blklab.errors import RunFailedError
from blklab.guests.boot import INIT, KERNEL, Boot
from blklab.guests.log import failure_reason, with_log_tail
from blklab.guests.process import GuestProcess
from blklab.guests.processor_lease import ProcessorLease
from blklab.guests.scratch import GuestFolder, SessionFolder
from blklab.guests.watchdog import ANSWER, WatchdogLimits, wait_for_guest

REQUEST = "request.json"
_STOPPED = "the session was stopped before the run had ended"


@dataclass(frozen=True)
class GuestImage:
    """The files of this machine that make up a guest."""

    kernel: Path
    kernel_id: str
    """Identifies the kernel within a session."""
    init: Path
    programs: Mapping[str, Path]
    """Further files, by their path in the guest."""
    parameters: tuple[str, ...] = ()
    """Boot parameters that this kernel knows, beside those of all kernels."""


@dataclass(frozen=True)
class GuestResult:
    """The result of a guest: an answer or an error."""

    answer: dict[str, Any] | None
    error: str | None
    files: Mapping[str, str]
    """Contents of the requested files that exist."""
    log: str


class Guests:
    """Runs the guests of a session, several at once; a context manager that removes every trace of them.

    Args:
        scratch: Directory for the session's scratch directory.
        boot: Boot parameters of all guests.
        parallel: Number of guests that its user runs at once.
        limits: Limits of the watchdog.
    """

    def __init__(
        self, scratch: Path, boot: Boot, *, parallel: int = 1, limits: WatchdogLimits | None = None
    ) -> None:
        self.parallel = parallel
        self._boot = boot
        self._limits = limits or WatchdogLimits()
        self._scratch = SessionFolder(scratch)
        self._mutex = threading.Lock()
        self._running: set[GuestProcess] = set()
        self._stopped = False

    def __enter__(self) -> Guests:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()  # each call of `run` waits for its own guest to end
        self._scratch.remove()

    def stop(self) -> None:
        """Kills all guests and starts no more; `run` then raises in the threads that wait for a guest."""
        with self._mutex:
            self._stopped = True
            for process in self._running:
                process.kill()

    def run(
        self,
        image: GuestImage,
        request: Mapping[str, Any],
        texts: Mapping[str, str],
        wanted: tuple[str, ...] = (),
    ) -> GuestResult:
        """Boots a guest and waits for it to end.

        Args:
            image: Kernel and programs.
            request: The request to the guest program.
            texts: Further files for the guest, by name.
            wanted: Names of files to return besides the answer.

        Raises:
            SpaceError: if there is too little space for its directory.
            RunFailedError: if it cannot be started or killed, or the session was stopped.
        """
        files = {
            KERNEL: self._scratch.share(image.kernel, f"{KERNEL}-{image.kernel_id}"),
            INIT: self._scratch.share(image.init, INIT),
        }
        # By their origin: guests of a session may have different files under one name.
        files |= {
            name: self._scratch.share(path, f"files{path.absolute()}")
            for name, path in image.programs.items()
        }
        folder = self._scratch.new_guest(files, {**texts, REQUEST: json.dumps(request)})
        try:
            code, given_up, log = self._boot_and_wait(folder, image.parameters)
            return self._read_result(folder, code, given_up, log, wanted)
        finally:
            self._scratch.remove_guest(folder)

    def _boot_and_wait(
        self, folder: GuestFolder, parameters: Sequence[str]
    ) -> tuple[int | None, str | None, str]:
        process: GuestProcess | None = None
        lease = ProcessorLease()
        try:
            with self._mutex:
                if self._stopped:
                    raise RunFailedError(_STOPPED)
                process = GuestProcess(self._boot.arguments(parameters), folder, lease.number)
                self._running.add(process)
            code, given_up = wait_for_guest(process, folder, self._limits)
            log = process.read_log()
        finally:
            if process is not None:
                process.kill()
                process.end()
                with self._mutex:
                    self._running.discard(process)
            lease.end()
        if self._stopped:
            raise RunFailedError(_STOPPED)
        return code, given_up, log

    def _read_result(
        self, folder: GuestFolder, code: int | None, given_up: str | None, log: str, wanted: tuple[str, ...]
    ) -> GuestResult:
        files = {name: text for name in wanted if (text := _text(folder.path / name)) is not None}
        answer = _text(folder.path / ANSWER)
        if answer is not None:
            try:
                read = json.loads(answer)
            except ValueError:
                read = None
            if isinstance(read, dict):
                return GuestResult(read, None, files, log)
            return GuestResult(None, with_log_tail("the guest's answer cannot be read", log), files, log)
        why = given_up or failure_reason(log) or f"the guest ended without an answer (exit code {code})"
        return GuestResult(None, with_log_tail(why, log), files, log)


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
