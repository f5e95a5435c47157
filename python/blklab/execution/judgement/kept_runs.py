"""Keeps the runs of the base, so that the next judgement against the same kernel need not repeat them.

A run depends on the kernel, the guest program and the request alone. The answer of a guest is kept under
the digest of these; the judged kernel's are not kept, for it is seldom judged twice.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blklab.backends.workers import GuestRuns, Simulations, Workers
from blklab.guests.boot import Boot
from blklab.guests.guest import GuestImage, GuestResult
from blklab.guests.kernels.cache import kernel_cache


def runs_folder() -> Path:
    """The folder of kept runs."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "blklab" / "judgements"


@dataclass(frozen=True)
class KeepingWorkers:
    """Workers that run a guest of one kernel only if they do not know its answer."""

    workers: Workers
    kernel_id: str
    """The kernel whose runs are kept."""

    def simulations(self) -> AbstractContextManager[Simulations]:
        """As of the workers."""
        return self.workers.simulations()

    @contextmanager
    def guests(self, boot: Boot) -> Iterator[GuestRuns]:
        """As of the workers, with a memory; those of kernels that were removed are forgotten."""
        for folder in runs_folder().glob("*"):
            if not (kernel_cache() / "builds" / folder.name).exists():
                shutil.rmtree(folder, ignore_errors=True)
        with self.workers.guests(boot) as guests:
            yield _KeepingGuests(guests, boot, self.kernel_id, runs_folder() / self.kernel_id)


class _KeepingGuests:
    def __init__(self, guests: GuestRuns, boot: Boot, kernel_id: str, folder: Path) -> None:
        self._guests = guests
        self._boot = boot
        self._kernel_id = kernel_id
        self._folder = folder
        self._programs: dict[Path, str] = {}

    @property
    def parallel(self) -> int:
        return self._guests.parallel

    def run(
        self,
        image: GuestImage,
        request: Mapping[str, Any],
        texts: Mapping[str, str],
        wanted: tuple[str, ...] = (),
    ) -> GuestResult:
        if image.kernel_id != self._kernel_id or image.programs or texts or wanted:
            return self._guests.run(image, request, texts, wanted)
        file = self._folder / f"{self._digest(image, request)}.json"
        with suppress(FileNotFoundError, ValueError):  # not kept, or damaged
            return GuestResult(dict(json.loads(file.read_text(encoding="utf-8"))), None, {}, "")
        result = self._guests.run(image, request, texts, wanted)
        if result.answer is not None and "error" not in result.answer:
            with suppress(OSError):  # it is a convenience: without space for it the judgement goes on
                _write(file, json.dumps(result.answer))
        return result

    def stop(self) -> None:
        self._guests.stop()

    def _digest(self, image: GuestImage, request: Mapping[str, Any]) -> str:
        if image.init not in self._programs:
            self._programs[image.init] = hashlib.sha256(image.init.read_bytes()).hexdigest()
        parts = [image.kernel_id, image.parameters, self._programs[image.init], repr(self._boot), request]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(f".{os.getpid()}")
    draft.write_text(text, encoding="utf-8")
    draft.replace(file)
