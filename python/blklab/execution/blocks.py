"""Runs the blocks of an experiment, skips the runs that are stored, and predicts the time left."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from blklab.backends import Session
from blklab.errors import RunFailedError
from blklab.execution.entitlement import with_promises
from blklab.execution.outlook import Outlook
from blklab.execution.racing import OpenQuestion, Standings, race_of
from blklab.quantities.sample_units import BLOCKS, SampleUnit
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import RunSample
from blklab.records.store import Store
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.plan import Cell, Plan


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

    def planned(self, outlook: Outlook) -> None:
        """The size of the experiment is known, before its first run."""

    def progressed(self, progress: Progress) -> None:
        """A run begins."""

    def measured(self, sample: RunSample) -> None:
        """A run ended."""


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


def run_blocks(
    record: ExperimentRecord, session: Session, store: Store, observer: Observer, clock: Clock
) -> None:
    """Runs block after block until the plan ends, every question is settled or the budget is used up.

    Args:
        record: The experiment, with the runs of earlier attempts.
        session: Where runs are made.
        store: Gets every run as it ends.
        observer: Receives progress.
        clock: Started with the experiment.

    Raises:
        RunFailedError: if all runs of a block failed.
        BlklabError: if the session cannot continue.
    """
    spec = record.spec
    plan = Plan(spec)
    race = race_of(record)
    stored = {sample.cell.sequence: sample for sample in record.samples}
    planned = None if spec.blocks is None else spec.blocks * plan.cells_per_block
    done = 0
    standings: Standings | None = None
    for number, block in enumerate(plan.blocks()):
        if spec.stops_when_settled:
            last_round = plan.cells_per_block if standings is None else _size(standings)
            blocks_left = clock.blocks_left(number, last_round)
            standings = race.standings(blocks_left)
            if standings.over or blocks_left == 0:
                return
            block = [c for c in block if c.scheduler.label in standings.running[c.workload.name]]  # noqa: PLW2901
        kept = _kept(block, stored)
        done += len(kept)
        missing = [cell for cell in block if cell.key.sequence not in kept]
        if missing and not clock.block_fits(len(missing)):
            return
        failures: list[RunSample] = []
        with _runs(session, missing) as runs:
            for position, (cell, outcome) in enumerate(runs):
                current = f"{cell.workload.name} under {cell.scheduler.label}"
                if standings is None:
                    left = None if planned is None else planned - done
                else:
                    blocks_left = clock.blocks_left(number + 1, len(block))
                    left = None if blocks_left is None else len(missing) - position + blocks_left * len(block)
                still_open = [] if standings is None else standings.open
                left_ns = clock.remaining_ns(left)
                observer.progressed(Progress(done, planned, number, left_ns, current, still_open))
                waited_ns = time.monotonic_ns()
                sample = with_promises(outcome(), cell, spec.cgroups)
                store.add_sample(record.run_id, sample)
                observer.measured(sample)
                # With parallel runs the wait for one is shorter than the run itself.
                clock.add(time.monotonic_ns() - waited_ns)
                kept[cell.key.sequence] = sample
                done += 1
                if sample.status == "failed":
                    failures.append(sample)
        for sample in kept.values():
            race.add(sample)
        if failures and len(failures) == len(block):
            raise all_failed(f"run of block {number}", failures, record.run_id)


def all_failed(what: str, failures: Sequence[RunSample], run_id: str) -> RunFailedError:
    """The error that ends an experiment in which nothing works; names the first failure."""
    return RunFailedError(
        f"every {what} failed: {failures[0].error}", hint=f"`blklab report {run_id}` shows all of them"
    )


@contextmanager
def _runs(
    session: Session, cells: Sequence[Cell]
) -> Iterator[Iterator[tuple[Cell, Callable[[], RunSample]]]]:
    """The runs of a block in the plan's order, each with a call that waits for its sample.

    They run in parallel if the session allows it; the samples do not depend on the degree of parallelism.
    """
    if session.parallel == 1 or len(cells) < 2:
        yield ((cell, partial(session.run, cell)) for cell in cells)
        return
    with ThreadPoolExecutor(min(session.parallel, len(cells))) as executor:
        try:
            futures = [executor.submit(session.run, cell) for cell in cells]
            yield ((cell, future.result) for cell, future in zip(cells, futures, strict=True))
        except BaseException:
            session.stop()
            executor.shutdown(wait=False, cancel_futures=True)
            raise


def _size(standings: Standings) -> int:
    """Number of runs of the next block."""
    return sum(len(labels) for labels in standings.running.values())


def _kept(block: Sequence[Cell], stored: Mapping[int, RunSample]) -> dict[int, RunSample]:
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
