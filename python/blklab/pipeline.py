"""Carrying out experiments: the one place, besides the command line, that sees all stages."""

from __future__ import annotations

import datetime
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import blklab
from blklab.backends import Session, SessionOptions, backend_for
from blklab.errors import InterruptedRunError, RunFailedError, SpecError, UsageError
from blklab.experiment import ExperimentRecord, RunState
from blklab.linux.machine import describe_machine
from blklab.metrics import metric_named
from blklab.plan import Cell, CellKey, Plan
from blklab.samples import RunSample
from blklab.scheduler_choice import SchedulerChoice
from blklab.spec import ExperimentSpec
from blklab.store import Store, new_run_id
from blklab.targets import parse_target


@dataclass(frozen=True)
class Progress:
    """How far an experiment is."""

    runs_done: int
    runs_planned: int | None
    """Nothing while a budget decides and no block has shown its length."""
    block: int
    remaining_ns: int | None
    current: str
    """The run under way, for people."""


class Observer(Protocol):
    """Hears what an experiment does."""

    def announce(self, line: str) -> None:
        """A step that is not a run."""

    def begun(self, record: ExperimentRecord) -> None:
        """The experiment passed all checks and has its name."""

    def progressed(self, progress: Progress) -> None:
        """A run begins."""

    def measured(self, sample: RunSample) -> None:
        """A run ended."""


@dataclass
class _Clock:
    """Measures blocks and predicts the rest."""

    spec: ExperimentSpec
    start_ns: int
    cell_time_ns: int = 0
    cells: int = 0

    def add(self, elapsed_ns: int) -> None:
        self.cell_time_ns += elapsed_ns
        self.cells += 1

    def expected_cell_ns(self) -> int | None:
        return self.cell_time_ns // self.cells if self.cells else None

    def block_fits(self, cells: int) -> bool:
        """Whether another block of so many runs ends within the budget; the first one always may."""
        expected = self.expected_cell_ns()
        if self.spec.budget_ns is None or expected is None:
            return True
        return time.monotonic_ns() - self.start_ns + expected * cells <= self.spec.budget_ns

    def remaining_ns(self, runs_done: int, runs_planned: int | None) -> int | None:
        expected = self.expected_cell_ns()
        if self.spec.budget_ns is not None:
            return max(0, self.spec.budget_ns - (time.monotonic_ns() - self.start_ns))
        if expected is None or runs_planned is None:
            return None
        return expected * (runs_planned - runs_done)


def compare(
    spec: ExperimentSpec, store: Store, observer: Observer, *, resumed: ExperimentRecord | None = None
) -> ExperimentRecord:
    """Carries out a comparison and stores every run as it ends.

    Args:
        spec: What to do; schedulers may be left to the target.
        store: Where runs go.
        observer: Hears of progress.
        resumed: An earlier experiment with the same cells, to be continued under its name.

    Raises:
        InterruptedRunError: a signal came; what was measured is stored and the state says so.
        BlklabError: the experiment cannot be made or cannot go on; likewise.
    """
    start_ns = time.monotonic_ns()
    now = datetime.datetime.now(datetime.timezone.utc)
    run_id = resumed.run_id if resumed else new_run_id(now)
    for workload in spec.workloads:
        metric_named(workload.decide_by)
    target = parse_target(spec.target)
    with backend_for(target).open(target, _session_options(spec, run_id)) as session:
        spec = settle_schedulers(spec, session.target.schedulers)
        warnings = session.check(spec.schedulers, spec.workloads)
        if resumed is None:
            record = ExperimentRecord(
                run_id=run_id,
                created_at=now.isoformat(timespec="seconds"),
                state="running",
                blklab_version=blklab.__version__,
                spec=spec,
                target=session.target,
                machine=describe_machine(),
                samples=[],
                warnings=warnings,
            )
            store.begin(record)
        else:
            record = resumed.model_copy(update={"spec": spec, "state": "running"})
            store.set_spec(run_id, spec)
            store.set_state(run_id, "running")
        observer.begun(record)
        state: RunState = "failed"
        try:
            session.prepare(spec.workloads, observer.announce)
            _run_blocks(record, session, store, observer, _Clock(spec, start_ns))
            state = "complete"
        except InterruptedRunError:
            state = "interrupted"
            raise
        finally:
            store.set_state(run_id, state)
    return store.load(run_id)


def settle_schedulers(spec: ExperimentSpec, offered: Sequence[str]) -> ExperimentSpec:
    """Names the schedulers where the person left them open: all that the target offers.

    Raises:
        SpecError: if fewer than two are left to compare.
    """
    choices = list(spec.schedulers) or [SchedulerChoice(name=name, label=name) for name in offered]
    if len(choices) < 2:
        raise SpecError(
            f"a comparison needs two schedulers, here is {choices[0].label if choices else 'none'} only",
            hint="name them with --schedulers; `blklab targets` lists what a disk offers",
        )
    return spec.with_schedulers(choices)


def _run_blocks(
    record: ExperimentRecord, session: Session, store: Store, observer: Observer, clock: _Clock
) -> None:
    plan = Plan(record.spec)
    made = _complete_groups(record, plan)
    planned = None if record.spec.blocks is None else record.spec.blocks * plan.cells_per_block
    done = len(made)
    for number, block in enumerate(plan.blocks()):
        missing = [cell for cell in block if cell.key.sequence not in made]
        if not missing:
            continue
        if not clock.block_fits(len(missing)):
            return
        failures: list[RunSample] = []
        for cell in missing:
            current = f"{cell.workload.name} under {cell.scheduler.label}"
            observer.progressed(Progress(done, planned, number, clock.remaining_ns(done, planned), current))
            sample = session.run(cell)
            store.add_sample(record.run_id, sample)
            observer.measured(sample)
            clock.add(sample.elapsed_ns)
            done += 1
            if sample.status == "failed":
                failures.append(sample)
        if len(failures) == plan.cells_per_block:
            raise RunFailedError(
                f"every run of block {number} failed: {failures[0].error}",
                hint=f"`blklab report {record.run_id}` shows all of them",
            )


def _complete_groups(record: ExperimentRecord, plan: Plan) -> set[int]:
    """Sequence numbers of runs that need not be made again.

    A group (block and workload) that was broken off, or has a failed run, is made again from its start:
    its runs are compared with one another because they stood next to one another.
    """
    stored = {sample.cell.sequence: sample.cell for sample in record.samples if sample.status == "ok"}
    kept: set[int] = set()
    for number in sorted({cell.block for cell in stored.values()}):
        groups: dict[str, list[Cell]] = {}
        for cell in plan.block(number):
            groups.setdefault(cell.workload.name, []).append(cell)
        for cells in groups.values():
            if all(stored.get(cell.key.sequence) == cell.key for cell in cells):
                kept.update(cell.key.sequence for cell in cells)
    return kept


def run_once(
    spec: ExperimentSpec, observer: Observer, *, timeline_file: str | None = None
) -> tuple[RunSample, SchedulerChoice, list[str]]:
    """Makes a single run of the first workload under the first scheduler (the target's own by default).

    The seed is used as it is, so that a run of a comparison can be repeated.

    Args:
        spec: The experiment.
        observer: Hears what goes on.
        timeline_file: Where the inside view goes; only simulated targets have one.

    Returns:
        The sample, the scheduler used, and warnings.

    Raises:
        UsageError: if a timeline is asked of a target that has none.
        RunFailedError: if the load failed.
        BlklabError: if the run cannot be made.
    """
    workload = spec.workloads[0]
    target = parse_target(spec.target)
    backend = backend_for(target)
    if timeline_file is not None and not backend.TIMELINES:
        raise UsageError(
            f"{spec.target}: only simulated devices show what happens inside",
            hint="leave out --timeline, or name a target such as sim:hdd-7200",
        )
    options = _session_options(spec, _fresh_run_id(), timeline_file=timeline_file)
    with backend.open(target, options) as session:
        choice = _choice_for(spec, session)
        warnings = session.check([choice], [workload])
        session.prepare([workload], observer.announce)
        observer.progressed(Progress(0, 1, 0, None, f"{workload.name} under {choice.label}"))
        sample = session.run(_single_cell(spec, choice))
    if sample.status == "failed":
        raise RunFailedError(f"the run failed: {sample.error}")
    return sample, choice, warnings


def planned_commands(
    spec: ExperimentSpec, *, blocks: int | None
) -> tuple[ExperimentSpec, list[tuple[Cell, list[str]]]]:
    """What an experiment would do, run by run, without doing it.

    Args:
        spec: The experiment.
        blocks: How many blocks to spell out; nothing means a single run as `run_once` makes it.
    """
    target = parse_target(spec.target)
    with backend_for(target).open(target, _session_options(spec, _fresh_run_id(), dry_run=True)) as session:
        if blocks is None:
            cells = [_single_cell(spec, _choice_for(spec, session))]
        else:
            spec = settle_schedulers(spec, session.target.schedulers)
            plan = Plan(spec)
            cells = [cell for number in range(blocks) for cell in plan.block(number)]
        return spec, [(cell, session.commands(cell)) for cell in cells]


def _fresh_run_id() -> str:
    return new_run_id(datetime.datetime.now(datetime.timezone.utc))


def _session_options(
    spec: ExperimentSpec, run_id: str, *, dry_run: bool = False, timeline_file: str | None = None
) -> SessionOptions:
    return SessionOptions(
        run_id=run_id,
        queue=spec.queue,
        cgroups=spec.cgroups,
        runtime_ns=spec.runtime_ns,
        allow_writes=spec.allow_writes,
        timeline_file=timeline_file,
        dry_run=dry_run,
    )


def _choice_for(spec: ExperimentSpec, session: Session) -> SchedulerChoice:
    if spec.schedulers:
        return spec.schedulers[0]
    name = session.target.default_scheduler
    if name is None:
        raise SpecError("the target has no scheduler of its own", hint="name one with --scheduler")
    return SchedulerChoice(name=name, label=name)


def _single_cell(spec: ExperimentSpec, choice: SchedulerChoice) -> Cell:
    workload = spec.workloads[0]
    key = CellKey(
        block=0, sequence=0, position=0, workload=workload.name, scheduler=choice.label, seed=spec.seed
    )
    return Cell(key=key, scheduler=choice, workload=workload)
