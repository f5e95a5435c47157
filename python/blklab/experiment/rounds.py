"""The one loop of an experiment: measures round after round until a check says that it is done.

A round is a stretch of slots for each workload that is switched, and a block of runs for all others together.
The states, and what leads from one to the next:

* ``MEASURE``: one more round, until no scheduler is left to run or the budget is used up;
* ``CHECK_CARRY_OVER``: slots that show in the next ones begin anew, longer or as runs; too few slots to tell
  get another round;
* ``CHECK_LONG_SLOTS``: slots that long ones contradict begin anew;
* ``DONE``.

Without switched workloads the two checks have nothing to do.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from enum import Enum, auto
from functools import partial

from blklab.analysis.long_slots import LONG_ROUNDS, LONG_SLOT_NS, compare_long_slots
from blklab.analysis.verdict import analyse
from blklab.backends import Session
from blklab.experiment.blocks import Clock, Observer, Progress, all_failed, in_order, whole_groups
from blklab.experiment.entitlement import with_promises
from blklab.experiment.racing import Race, Standings, race_of
from blklab.experiment.slots import slots_per_run
from blklab.experiment.switchback import (
    FEWEST_ROUNDS_ANEW,
    FINAL_CHECK,
    INTERIM_CHECK,
    LONG_SLOTS,
    SlotHistory,
    Strictness,
    as_long_slots,
    closest_pair,
    influence,
    lengthened,
    rounds_of_stretch,
    tests_carry_over,
)
from blklab.quantities.sample_units import BLOCKS, SampleUnit
from blklab.quantities.units import format_duration
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import RunSample
from blklab.records.store import Store
from blklab.report.sentences.slots import long_slots_text
from blklab.spec.budget import MAX_BLOCKS
from blklab.spec.plan import Cell, Plan
from blklab.spec.slots import SlotDecision, slots_with_one_design
from blklab.spec.stretches import Stretch, stretch_of
from blklab.spec.workloads import Workload

_OVERHEAD = 1.25
"""Time of a stretch in units of its slots' time, until one has been measured."""


class State(Enum):
    """The next step of an experiment under way."""

    MEASURE = auto()
    CHECK_CARRY_OVER = auto()
    CHECK_LONG_SLOTS = auto()
    DONE = auto()


class Rounds:
    """An experiment under way. It holds what a verdict needs of the samples; the store has all of them."""

    def __init__(
        self, record: ExperimentRecord, session: Session, store: Store, observer: Observer, clock: Clock
    ) -> None:
        """Continues after the stored samples.

        A block that was interrupted is made whole: of each workload, its runs are kept if all are there.

        Args:
            record: The experiment, with the samples of earlier attempts.
            session: Where loads run.
            store: Gets the samples of every stretch and run as it ends.
            observer: Receives progress.
            clock: Started with the experiment.
        """
        self._record = record.model_copy(update={"samples": []})
        self._spec = record.spec
        self._session = session
        self._store = store
        self._observer = observer
        self._clock = clock
        self._plan = Plan(record.spec)
        self._race: Race = race_of(record)
        self._is_first = not record.samples
        self._history = SlotHistory([workload.name for workload in self._spec.workloads])
        self._last: dict[str, frozenset[str]] = {}
        """Schedulers that ran last, by workload."""
        self._load_ns = 0
        self._elapsed_ns = 0
        self._number = _first_block(record)
        self._blocks = self._plan.blocks(self._number)
        self._block = next(self._blocks, None)
        self._block_size = 0
        """Runs of the last block; 0 before the first."""
        self._stored = {
            one.cell.sequence: one
            for one in record.samples
            if one.slot is None and one.cell.block >= self._number
        }
        """Runs of earlier attempts in the blocks to come."""
        self._runs_done = len(record.samples) - len(self._stored)
        for sample in record.samples:
            self._history.add(sample)
        for sample in record.without_uncounted_slots().samples:
            if sample.cell.sequence not in self._stored:
                self._race.add(sample)

    def run(self) -> None:
        """Runs until the plan ends, every question is settled or the budget is used up.

        Raises:
            RunFailedError: if a whole stretch or block failed.
            BlklabError: if the session cannot continue.
        """
        steps = {
            State.MEASURE: self._measure,
            State.CHECK_CARRY_OVER: self._check_carry_over,
            State.CHECK_LONG_SLOTS: self._check_long_slots,
        }
        state = State.MEASURE
        while state is not State.DONE:
            state = steps[state]()

    # ---- the states ---------------------------------------------------------------------------------

    def _measure(self) -> State:
        """One round of those that are still in the race; all of them if the plan fixes the number."""
        standings = self._standings()
        if standings is None:
            everyone = frozenset(self._labels)
            return self._next(self._run_round({one.name: everyone for one in self._spec.workloads}, None))
        if standings.over:
            return State.CHECK_CARRY_OVER
        return self._next(self._run_round(standings.running, standings))

    def _check_carry_over(self) -> State:
        if not self._spec.switched:
            return State.DONE
        restarted = [self._restart_on_carry_over(name, FINAL_CHECK) for name in list(self._spec.switched)]
        if any(restarted):
            return State.MEASURE
        # An answer needs as many slots as it takes to see carry-over.
        untested = {
            name: running
            for name, running in self._last.items()
            if (decision := self._spec.switched.get(name)) is not None
            and not tests_carry_over(name, self._history.short_slots(name, decision), running)
        }
        if untested:
            return self._next(self._run_round(untested, self._standings()))
        return State.CHECK_LONG_SLOTS

    def _check_long_slots(self) -> State:
        standings = self._standings()
        given_up = [] if standings is None else standings.given_up
        everyone = frozenset(self._labels)
        settled = [name for name in self._spec.switched if name not in given_up]
        restarted = [self._restart_on_long_slots(name, self._last.get(name, everyone)) for name in settled]
        return State.MEASURE if any(restarted) else State.DONE

    @staticmethod
    def _next(progressed: bool) -> State:
        return State.MEASURE if progressed else State.DONE

    def _standings(self) -> Standings | None:
        """The race so far; None if the number of blocks is fixed."""
        if not self._spec.stops_when_settled:
            return None
        return self._race.standings(self._blocks_left(), rounds_left=self._rounds_left())

    # ---- one round ----------------------------------------------------------------------------------

    def _run_round(self, running: Mapping[str, frozenset[str]], standings: Standings | None) -> bool:
        """Runs a stretch for each switched workload and a block for the others; False if nothing fits."""
        running = {name: labels for name, labels in running.items() if labels}
        self._last.update(running)
        switched = [one for one in self._spec.workloads if one.name in self._spec.switched.keys() & running]
        made: list[str] = []
        for together in self._measured_together(switched):
            made += self._run_stretches(together, running, standings)
        # One that has runs since its stretch begins with the next round.
        rest = running.keys() - self._spec.switched.keys() - set(made)
        whole = bool(rest) and self._run_block({name: running[name] for name in rest}, standings)
        self._is_first = False
        return bool(made) or whole

    def _measured_together(self, workloads: Sequence[Workload]) -> list[list[Workload]]:
        """Workloads whose stretches may run at once; with a goal, each may change the design of the next."""
        if self._session.parallel == 1 or self._spec.goal is not None:
            return [[workload] for workload in workloads]
        return [list(workloads)]

    def _run_stretches(
        self,
        workloads: Sequence[Workload],
        running: Mapping[str, frozenset[str]],
        standings: Standings | None,
    ) -> list[str]:
        """Runs a stretch for each workload if the budget permits one; the names of those that had one."""
        planned = [self._planned_stretch(workload, running[workload.name]) for workload in workloads]
        stretches = [stretch for stretch in planned if stretch is not None]
        calls = [partial(self._session.run_stretch, stretch) for stretch in stretches]
        with in_order(self._session, calls) as outcomes:
            for stretch, outcome in zip(stretches, outcomes, strict=True):
                name = stretch.workload.name
                in_turns = ", ".join(label for label in self._labels if label in running[name])
                unit = SampleUnit(stretch.slot_ns)
                left_ns = self._remaining_ns(self._runs_left())
                self._tell(
                    f"{name}, {in_turns} in turns", self._history.next_round[name], left_ns, standings, unit
                )
                begun_ns = time.monotonic_ns()
                samples = self._with_promises(stretch, outcome())
                self._elapsed_ns += time.monotonic_ns() - begun_ns
                self._load_ns += stretch.length_ns
                self._keep_slots(samples)
                if all(sample.status == "failed" for sample in samples):
                    raise all_failed(f"slot of a stretch of {name}", samples, self._record.run_id)
        names = [stretch.workload.name for stretch in stretches]
        for name in names:
            self._restart_on_carry_over(name, INTERIM_CHECK)
        return names

    def _planned_stretch(self, workload: Workload, running: frozenset[str]) -> Stretch | None:
        """The next stretch of a workload; None if it has runs by now, or if the budget permits no stretch."""
        decision = self._spec.switched.get(workload.name)
        if decision is None:
            return None
        round_ns = (decision.slot_ns or 0) * len(running)
        rounds = rounds_of_stretch(self._history.next_stretch[workload.name], round_ns)
        left = self._rounds_left(running=len(running))[workload.name]
        if left is not None:
            rounds = min(rounds, left)
        if rounds < 1 and not self._is_first:
            return None
        return self._stretch(workload, decision, running, max(1, rounds))

    def _stretch(
        self, workload: Workload, decision: SlotDecision, running: frozenset[str], rounds: int
    ) -> Stretch:
        return stretch_of(
            workload,
            self._spec.schedulers,
            decision,
            seed=self._spec.seed,
            number=self._history.next_stretch[workload.name],
            first_round=self._history.next_round[workload.name],
            rounds=rounds,
            running=running,
            first_sequence=self._first_sequence(workload),
            sequence_step=self._plan.cells_per_block,
        )

    def _first_sequence(self, workload: Workload) -> int:
        """Beyond the sequence of all runs, so that no slot takes the place of one."""
        place = [other.name for other in self._spec.workloads].index(workload.name)
        return MAX_BLOCKS * self._plan.cells_per_block + place * len(self._spec.schedulers)

    def _run_block(self, running: Mapping[str, frozenset[str]], standings: Standings | None) -> bool:
        """Makes a block whole; False if the plan has no more, or the budget does not permit another one."""
        if self._block is None:
            return False
        block = [
            cell
            for cell in self._block
            if cell.scheduler.label in running.get(cell.workload.name, frozenset())
        ]
        kept = whole_groups(block, self._stored)
        missing = [cell for cell in block if cell.key.sequence not in kept]
        if missing and not self._is_first and not self._fits(missing):
            return False
        self._block_size = len(block)
        self._runs_done += len(kept)
        made = self._make_runs(missing, standings)
        for sample in (*kept.values(), *made):
            self._race.add(sample)
        failures = [sample for sample in made if sample.status == "failed"]
        if failures and len(failures) == len(block):
            raise all_failed(f"run of block {self._number}", failures, self._record.run_id)
        self._number += 1
        self._block = next(self._blocks, None)
        return True

    def _fits(self, missing: Sequence[Cell]) -> bool:
        if not self._clock.block_fits(len(missing)):
            return False
        # A fixed number of blocks ends with the plan, whose lists are no blocks in the order by-scheduler.
        fixed = not self._spec.stops_when_settled
        return fixed or self._clock.blocks_left(self._number, len(missing)) != 0

    def _make_runs(self, cells: Sequence[Cell], standings: Standings | None) -> list[RunSample]:
        """Runs cells in their order, in parallel if the session allows it, and stores each as it ends."""
        made: list[RunSample] = []
        with in_order(self._session, [partial(self._session.run, cell) for cell in cells]) as outcomes:
            for cell, outcome in zip(cells, outcomes, strict=True):
                left_ns = self._remaining_ns(self._runs_left(len(cells) - len(made)))
                self._tell(
                    f"{cell.workload.name} under {cell.scheduler.label}", self._number, left_ns, standings
                )
                waited_ns = time.monotonic_ns()
                sample = with_promises(outcome(), cell, self._spec.cgroups)
                self._store.add_sample(self._record.run_id, sample)
                self._observer.measured(sample)
                # With parallel runs the wait for one is shorter than the run itself.
                self._clock.add(time.monotonic_ns() - waited_ns)
                self._runs_done += 1
                made.append(sample)
        return made

    # ---- beginning anew -----------------------------------------------------------------------------

    def _restart_on_carry_over(self, name: str, strictness: Strictness) -> bool:
        """Begins a workload anew with longer slots, or with runs, if one slot shows in the next."""
        decision = self._spec.switched.get(name)
        if decision is None:
            return False  # It has runs since another workload began anew: a goal needs one design for all.
        slots = self._history.short_slots(name, decision)
        reason = influence(name, slots, strictness, self._spec.margin)
        return reason is not None and self._begin_anew(name, decision, reason)

    def _restart_on_long_slots(self, name: str, running: frozenset[str]) -> bool:
        """Compares two schedulers in long slots, once; begins anew if these contradict the short ones."""
        decision = self._spec.switched.get(name)
        if decision is None or 2 * (decision.slot_ns or 0) > LONG_SLOT_NS:
            return False  # Its slots are long themselves.
        if not any(sample.is_long_slot for sample in self._history.slots(name, decision)):
            pair = closest_pair(analyse(self._stored_record()), name, running)
            if pair is None or not self._long_slots_fit():
                return False
            self._run_long_slots(name, pair)
        slots = self._history.slots(name, decision)
        found = compare_long_slots(name, slots, decision.slot_ns or LONG_SLOT_NS)
        if found is None or not found.contradicts(FINAL_CHECK.level, FINAL_CHECK.limit(self._spec.margin)):
            return False
        return self._begin_anew(name, decision, long_slots_text(found))

    def _long_slots_fit(self) -> bool:
        """Whether a budget of time permits long slots; one of blocks does."""
        length_ns = 2 * LONG_ROUNDS * LONG_SLOT_NS
        return self._spec.budget_ns is None or self._clock.budget_left_ns() >= length_ns * self._overhead

    def _run_long_slots(self, name: str, pair: frozenset[str]) -> None:
        self._observer.announce(
            f"{name}: {' and '.join(label for label in self._labels if label in pair)} in slots of "
            f"{format_duration(LONG_SLOT_NS)}, to see whether the short ones tell the truth"
        )
        stretch = self._stretch(self._spec.workload(name), LONG_SLOTS, pair, LONG_ROUNDS)
        samples = self._with_promises(stretch, self._session.run_stretch(stretch))
        self._keep_slots(as_long_slots(samples))

    def _begin_anew(self, name: str, decision: SlotDecision, reason: str) -> bool:
        """Begins a workload anew with longer slots, or with runs, if the budget permits that."""
        left = self._rounds_left()[name]
        if left is not None and left < FEWEST_ROUNDS_ANEW * 2:
            return False  # too late to begin anew; the report says what was seen
        changed = lengthened(decision, reason, first_round=self._history.next_round[name])
        slots = {**self._spec.slots, name: changed}
        if self._spec.goal is not None:
            slots = slots_with_one_design(slots)
        self._observer.announce(
            f"{name}: {reason}; beginning anew with "
            + ("runs" if changed.slot_ns is None else f"slots of {format_duration(changed.slot_ns)}")
        )
        self._spec = self._spec.model_copy(update={"slots": slots})
        self._record = self._record.model_copy(update={"spec": self._spec})
        self._store.set_spec(self._record.run_id, self._spec)
        self._race = race_of(self._record)
        for sample in self._stored_record().without_uncounted_slots().samples:
            self._race.add(sample)
        return True

    def _stored_record(self) -> ExperimentRecord:
        """The experiment with all of its samples so far."""
        samples = self._store.load(self._record.run_id).samples
        return self._record.model_copy(update={"samples": samples})

    # ---- what is kept and told ----------------------------------------------------------------------

    def _keep_slots(self, samples: Sequence[RunSample]) -> None:
        self._store.add_samples(self._record.run_id, samples)
        for sample in samples:
            self._observer.measured(sample)
            if not sample.is_long_slot:
                self._race.add(sample)
            self._history.add(sample)
            self._runs_done += 1

    def _with_promises(self, stretch: Stretch, samples: Sequence[RunSample]) -> list[RunSample]:
        return [
            with_promises(sample, Cell(slot.key, slot.scheduler, stretch.workload), self._spec.cgroups)
            for slot, sample in zip(stretch.slots, samples, strict=True)
        ]

    def _tell(
        self,
        current: str,
        number: int,
        left_ns: int | None,
        standings: Standings | None,
        unit: SampleUnit = BLOCKS,
    ) -> None:
        planned = None if self._spec.blocks is None else self._spec.blocks * self._plan.cells_per_block
        still_open = [] if standings is None else standings.open
        self._observer.progressed(
            Progress(self._runs_done, planned, number, left_ns, current, still_open, unit)
        )

    # ---- the budget ---------------------------------------------------------------------------------

    @property
    def _labels(self) -> list[str]:
        return [choice.label for choice in self._spec.schedulers]

    @property
    def _overhead(self) -> float:
        return self._elapsed_ns / self._load_ns if self._load_ns else _OVERHEAD

    def _blocks_left(self) -> int | None:
        """Blocks that the budget still permits, from the next one on."""
        in_blocks = len(self._spec.workloads) - len(self._spec.switched)
        size = self._block_size or len(self._labels) * in_blocks
        return self._clock.blocks_left(self._number, max(1, size))

    def _rounds_left(self, running: int | None = None) -> Mapping[str, int | None]:
        """Rounds that the budget still permits, by workload; None if unknown.

        A budget of blocks permits as many rounds as fit into the load of that many blocks.
        """
        left: dict[str, int | None] = {}
        for name, decision in self._spec.switched.items():
            if self._spec.budget_ns is not None:
                round_ns = (decision.slot_ns or 1) * (running or len(self._labels)) * self._overhead
                left[name] = int(self._clock.budget_left_ns() // round_ns)
            elif self._spec.budget_blocks is not None:
                workload = self._spec.workload(name)
                per_run = slots_per_run(workload, decision, self._spec.runtime_ns)
                left[name] = max(0, self._spec.budget_blocks * per_run - self._history.next_round[name])
            else:
                left[name] = None
        return left

    def _runs_left(self, of_block: int = 0) -> int | None:
        """Runs that are left at most, with so many of the block under way; None if unknown."""
        if self._spec.blocks is not None:
            return self._spec.blocks * self._plan.cells_per_block - self._runs_done
        if len(self._spec.switched) == len(self._spec.workloads):
            return 0
        size = self._block_size or len(self._labels) * (len(self._spec.workloads) - len(self._spec.switched))
        begun = self._number + (1 if of_block else 0)
        blocks = self._clock.blocks_left(begun, size)
        return None if blocks is None else of_block + blocks * size

    def _remaining_ns(self, runs_left: int | None) -> int | None:
        """Longest time that the experiment may still take; None if unknown."""
        if self._spec.budget_ns is not None:
            return self._clock.budget_left_ns()
        rounds_ns = [
            count * (self._spec.switched[name].slot_ns or 0) * len(self._labels)
            for name, count in self._rounds_left().items()
            if count is not None
        ]
        slots_ns = round(sum(rounds_ns) * self._overhead)
        if runs_left == 0:
            return slots_ns
        runs_ns = self._clock.remaining_ns(runs_left)
        return None if runs_ns is None else slots_ns + runs_ns


def _first_block(record: ExperimentRecord) -> int:
    """The block to go on with.

    Runs alone are raced again from the first block on, since the samples tell who ran in which. Slots were
    made beside the blocks, so that only the last block can be unfinished.
    """
    in_slots = bool(record.spec.switched) or any(sample.slot is not None for sample in record.samples)
    return max((one.cell.block for one in record.samples if one.slot is None), default=0) if in_slots else 0
