"""Compares a scheduler with itself on a real disk, where every difference is noise."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from blklab.linux.processes.signals import signals_as_exceptions
from blklab.records.store import Store
from blklab.spec.request import SpecValues


@contextmanager
def passing_store(url: str | None = None) -> Iterator[Store]:
    """A temporary store, or the named one; a signal ends the current run and restores the disk."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Store.opened(url or str(Path(folder) / "runs.sqlite")) as store,
        signals_as_exceptions(),
    ):
        yield store


def against_itself(
    target: str, workloads: Sequence[str], scheduler: str, *, blocks: int, runtime: str, seed: int
) -> SpecValues:
    """A comparison of two names for one scheduler, ``first`` and ``second``."""
    return SpecValues(
        targets=[target],
        workloads=list(workloads),
        schedulers=[f"first={scheduler},second={scheduler}"],
        blocks=blocks,
        runtime=runtime,
        seed=seed,
    )
