"""Keeps the runs of the base, so that the next judgement against the same kernel need not repeat them.

The judged kernel's are not kept, for it is seldom judged twice.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blklab.backends.workers import GuestRuns, Simulations, Workers
from blklab.guests.boot import Boot
from blklab.guests.guest import GuestImage, GuestResult
from blklab.guests.kept_answers import KeptAnswers
from blklab.guests.kernels.cache import cache_folder, kernel_cache


def runs_folder() -> Path:
    """The folder of kept runs."""
    return cache_folder("judgements")


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
            kept = KeptAnswers(runs_folder() / self.kernel_id)
            yield _KeepingGuests(guests, boot, self.kernel_id, kept)


class _KeepingGuests:
    def __init__(self, guests: GuestRuns, boot: Boot, kernel_id: str, kept: KeptAnswers) -> None:
        self._guests = guests
        self._boot = boot
        self._kernel_id = kernel_id
        self._kept = kept
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
        key = self._key(image, request)
        known = self._kept.get(key)
        if known is not None:
            return GuestResult(known, None, {}, "")
        result = self._guests.run(image, request, texts, wanted)
        if result.answer is not None and "error" not in result.answer:
            with suppress(OSError):  # it is a convenience: without space for it the judgement goes on
                self._kept.put(key, result.answer)
        return result

    def stop(self) -> None:
        self._guests.stop()

    def _key(self, image: GuestImage, request: Mapping[str, Any]) -> list[Any]:
        if image.init not in self._programs:
            self._programs[image.init] = hashlib.sha256(image.init.read_bytes()).hexdigest()
        return [image.kernel_id, image.parameters, self._programs[image.init], repr(self._boot), request]
