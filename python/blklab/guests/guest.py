"""One guest from boot to answer, and all guests of a session."""

from __future__ import annotations

import json
import os
import random
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from blklab.errors import RunFailedError
from blklab.guests.boot import INIT, KERNEL, Boot
from blklab.guests.log import failure_reason, with_log_tail
from blklab.guests.process import GuestProcess
from blklab.guests.scratch import GuestFolder, SessionFolder
from blklab.guests.watchdog import ANSWER, WatchdogLimits, watch

REQUEST = "request.json"
_STOPPED = "the session was stopped before the run had ended"


@dataclass(frozen=True)
class GuestImage:
    """What a guest is made of, on this machine."""

    kernel: Path
    kernel_id: str
    """Tells kernels apart within a session."""
    init: Path
    programs: Mapping[str, Path]
    """Further files by their path in the guest."""


@dataclass(frozen=True)
class GuestResult:
    """How a guest ended: with an answer or with an error."""

    answer: dict[str, Any] | None
    error: str | None
    files: Mapping[str, str]
    """Texts of the files that were asked for and are there."""
    log: str


class Guests:
    """The guests of a session, side by side; a context manager that leaves nothing behind."""

    def __init__(self, place: Path, boot: Boot, patience: WatchdogLimits | None = None) -> None:
        self._boot = boot
        self._patience = patience or WatchdogLimits()
        self._scratch = SessionFolder(place)
        self._mutex = threading.Lock()
        self._running: dict[GuestProcess, int] = {}
        """With the processor of each."""
        self._stopped = False

    def __enter__(self) -> Guests:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()  # those who called `run` see to their guests' ends themselves
        self._scratch.remove()

    def stop(self) -> None:
        """Ends all guests and starts no more; `run` raises in the threads that wait for one."""
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
        """Boots a guest and waits for its end.

        Args:
            image: Kernel and programs.
            request: What it shall do.
            texts: Further files for it, by name.
            wanted: Names of files to bring back beside the answer.

        Raises:
            SpaceError: if there is no room for its folder.
            RunFailedError: if it cannot be started or killed, or the session was stopped.
        """
        files = {
            KERNEL: self._scratch.share(image.kernel, f"{KERNEL}-{image.kernel_id}"),
            INIT: self._scratch.share(image.init, INIT),
        }
        files |= {name: self._scratch.share(path, f"root/{name}") for name, path in image.programs.items()}
        folder = self._scratch.new_run(files, {**texts, REQUEST: json.dumps(request)})
        try:
            code, lost, log = self._live(folder)
            return self._judge(folder, code, lost, log, wanted)
        finally:
            self._scratch.remove_run(folder)

    def _live(self, folder: GuestFolder) -> tuple[int | None, str | None, str]:
        process: GuestProcess | None = None
        try:
            with self._mutex:
                if self._stopped:
                    raise RunFailedError(_STOPPED)
                processor = self._free_processor()
                process = GuestProcess(self._boot, folder, processor)
                self._running[process] = processor
            code, lost = watch(process, folder, self._patience)
            log = process.read_log()
        finally:
            if process is not None:
                process.kill()
                process.end()
                with self._mutex:
                    self._running.pop(process, None)
        if self._stopped:
            raise RunFailedError(_STOPPED)
        return code, lost, log

    def _free_processor(self) -> int:
        """A processor that no other guest of the session has, if there is one."""
        ours = os.sched_getaffinity(0)
        free = ours - set(self._running.values()) or ours
        return random.choice(sorted(free))  # noqa: S311 - several sessions must not all take the first

    def _judge(
        self, folder: GuestFolder, code: int | None, lost: str | None, log: str, wanted: tuple[str, ...]
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
        why = lost or failure_reason(log) or f"the guest ended without an answer (exit code {code})"
        return GuestResult(None, with_log_tail(why, log), files, log)


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
