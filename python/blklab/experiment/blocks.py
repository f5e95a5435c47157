"""Blocks of runs: those that are stored already, the time that the rest takes, and parallel runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from blklab.backends import Session
from blklab.errors import RunFailedError
from blklab.experiment.outlook import Outlook, Shortage
from blklab.experiment.racing import OpenQuestion
from blklab.quantities.sample_units import BLOCKS, SampleUnit
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import RunSample
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.plan import Cell

T = TypeVar("T")


@dataclass(frozen=True)
class Progress:
    """The progress of an experiment."""

    runs_done: int
    runs_planned: int | None
    """None while samples or a budget decide."""
    block: int
    remaining_ns: int | None
    current: str
    """The run under way, for people."""
    open: list[OpenQuestion] = field(default_factory=list)
    """Questions not settled yet, if the length of the experiment depends on them."""
    unit: SampleUnit = BLOCKS
    """Rounds if what is under way is a stretch of slots; `block` is its first round then."""


class Observer(Protocol):
    """Receives the events of an experiment."""

    def announce(self, line: str) -> None:
        """A step that is not a run."""

    def begun(self, record: ExperimentRecord) -> None:
        """The experiment passed all checks and has its name."""

    def falls_short(self, shortage: Shortage, schedulers: int) -> None:
        """After the pilots, too little of the budget is left for an answer."""

    def planned(self, outlook: Outlook) -> None:
        """The size of the experiment is known, before its first run."""

    def progressed(self, progress: Progress) -> None:
        """A run begins."""

    def measured(self, sample: RunSample) -> None:
        """A run ended."""


class NullRunObserver:
    """An observer of runs that are shown nowhere."""

    def announce(self, line: str) -> None:
        """Not shown."""

    def begun(self, record: ExperimentRecord) -> None:
        """Not shown."""

    def falls_short(self, shortage: Shortage, schedulers: int) -> None:
        """Not shown."""

    def planned(self, outlook: Outlook) -> None:
        """Not shown."""

    def progressed(self, progress: Progress) -> None:
        """Not shown."""

    def measured(self, sample: RunSample) -> None:
        """Not shown."""


@dataclass
class Clock:
    """Measures blocks and predicts the rest."""

    spec: ExperimentSpec
    start_ns: int
    cell_time_ns: int = 0
    cells: int = 0

    def add(self, elapsed_ns: int) -> None:
        """Counts a run and the time it took."""
        self.cell_time_ns += elapsed_ns
        self.cells += 1

    def expected_cell_ns(self) -> int | None:
        """Mean time of the runs so far."""
        return self.cell_time_ns // self.cells if self.cells else None

    def block_fits(self, cells: int) -> bool:
        """Whether another block of that many runs ends within the budget; the first block always runs."""
        expected = self.expected_cell_ns()
        if self.spec.budget_ns is None or expected is None:
            return True
        return expected * cells <= self.budget_left_ns()

    def budget_left_ns(self) -> int:
        """Time that is left of a budget of time."""
        return max(0, (self.spec.budget_ns or 0) - (time.monotonic_ns() - self.start_ns))

    def blocks_left(self, number: int, cells: int) -> int | None:
        """Blocks of that many runs that the limits still allow, from block `number` on; None if unknown."""
        limit = self.spec.budget_blocks if self.spec.stops_when_settled else self.spec.blocks
        if limit is not None:
            return max(0, limit - number)
        expected = self.expected_cell_ns()
        if self.spec.budget_ns is None or not expected:
            return None
        return self.budget_left_ns() // (expected * max(1, cells))

    def remaining_ns(self, runs_left: int | None) -> int | None:
        """Longest time that the experiment may still take; None if unknown."""
        if self.spec.budget_ns is not None:
            return self.budget_left_ns()
        expected = self.expected_cell_ns()
        return None if expected is None or runs_left is None else expected * runs_left


def all_failed(what: str, failures: Sequence[RunSample], run_id: str) -> RunFailedError:
    """The error that ends an experiment in which nothing works; names the first failure."""
    return RunFailedError(
        f"every {what} failed: {failures[0].error}", hint=f"`blklab report {run_id}` shows all of them"
    )


def in_order(
    session: Session, calls: Sequence[Callable[[], T]]
) -> AbstractContextManager[Iterator[Callable[[], T]]]:
    """Calls of a session, each with a call that waits for its outcome, in their order.

    They run in parallel if the session allows it; the outcomes do not depend on the degree of parallelism.
    """
    if session.parallel == 1 or len(calls) < 2:
        return nullcontext(iter(calls))
    return _parallel(session, calls)


@contextmanager
def _parallel(session: Session, calls: Sequence[Callable[[], T]]) -> Iterator[Iterator[Callable[[], T]]]:
    with ThreadPoolExecutor(min(session.parallel, len(calls))) as executor:
        try:
            futures = [executor.submit(call) for call in calls]
            yield (future.result for future in futures)
        except BaseException:
            session.stop()
            executor.shutdown(wait=False, cancel_futures=True)
            raise


def whole_groups(block: Sequence[Cell], stored: Mapping[int, RunSample]) -> dict[int, RunSample]:
    """Stored runs of a block that are valid as they are, by their place in the sequence.

    A group (block and workload) that was interrupted or has a failed run starts again from its first run,
    because its runs are only comparable if they ran next to one another.
    """
    groups: dict[str, list[Cell]] = {}
    for cell in block:
        groups.setdefault(cell.workload.name, []).append(cell)
    kept: dict[int, RunSample] = {}
    for cells in groups.values():
        found = {cell.key.sequence: stored.get(cell.key.sequence) for cell in cells}
        whole = {
            cell.key.sequence: sample
            for cell in cells
            if (sample := found[cell.key.sequence]) is not None
            and sample.status == "ok"
            and sample.cell == cell.key
        }
        if len(whole) == len(cells):
            kept.update(whole)
    return kept
