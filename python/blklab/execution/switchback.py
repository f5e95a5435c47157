"""Runs experiments with switchbacks: stretches for the workloads that permit them, blocks for the others."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from blklab.analysis.carry_over import carry_over
from blklab.analysis.long_slots import LONG_ROUNDS, LONG_SLOT_NS, compare_long_slots
from blklab.analysis.verdict import analyse
from blklab.backends import Session
from blklab.execution.blocks import Clock, Observer, Progress, all_failed
from blklab.execution.entitlement import with_promises
from blklab.execution.racing import Race, Standings, race_of
from blklab.execution.slots import slots_per_run
from blklab.quantities.sample_units import BLOCKS, SampleUnit
from blklab.quantities.units import format_duration
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import NS_PER_SECOND, RunSample
from blklab.records.store import Store
from blklab.spec.budget import MAX_BLOCKS
from blklab.spec.plan import Cell, Plan
from blklab.spec.slots import SlotDecision, slots_with_one_design
from blklab.spec.stretches import Stretch, stretch_of
from blklab.spec.workloads import Workload

STRETCHES_NS = (8 * NS_PER_SECOND, 8 * NS_PER_SECOND, 16 * NS_PER_SECOND)
"""Lengths of the first stretches, the last one also of all further ones.

Short ones show results sooner, but each costs the start of a load.
"""
LONGEST_AFTER_CARRY_OVER_NS = 4 * NS_PER_SECOND
"""Slots that influence one another are lengthened up to this; beyond, they have no advantage over runs."""
_OVERHEAD = 1.25
"""Time of a stretch in units of its slots' time, until one has been measured."""


@dataclass(frozen=True)
class Strictness:
    """How clear carry-over must be to begin anew."""

    level: float
    margins: float
    """Smaller carry-over than so many margins of practical equality is left to the report."""


FEWEST_ROUNDS_ANEW = 12
"""Rounds of longer slots that the budget must still permit."""
UNDER_WAY = Strictness(level=0.01, margins=2.0)
ENDING = Strictness(level=0.05, margins=1.0)
"""Before an answer is accepted: what biases it was found by about as many slots."""


def influence(
    workload: str, samples: Sequence[RunSample], strictness: Strictness, margin: float
) -> str | None:
    """Tells how slots influence one another, if they do so clearly enough to begin anew.

    Args:
        workload: Its name.
        samples: Slots of one length.
        strictness: What is clear enough.
        margin: Of practical equality, as a fraction.

    Returns:
        One sentence; None if longer slots are not needed.
    """
    found = carry_over(workload, samples, strictness.level)
    limit = strictness.margins * math.log1p(margin)
    return found.text if any(_log_size(one.ratio) > limit for one in found.seen) else None


def lengthened(decision: SlotDecision, reason: str, *, first_round: int) -> SlotDecision:
    """Slots twice as long, because shorter ones influenced one another; runs if those would be too long.

    Args:
        decision: With slots.
        reason: The influence, in one sentence.
        first_round: The first round of the longer slots.
    """
    slot_ns = 2 * (decision.slot_ns or 0)
    if slot_ns > LONGEST_AFTER_CARRY_OVER_NS:
        return SlotDecision(reason=f"in slots of {format_duration(decision.slot_ns or 0)}, {reason}")
    return SlotDecision(
        slot_ns=slot_ns,
        settling_ns=2 * decision.settling_ns,
        first_round=first_round,
        reason=f"in shorter slots, {reason}",
    )


class SwitchbackRun:
    """An experiment under way in which at least one workload is switched."""

    def __init__(
        self, record: ExperimentRecord, session: Session, store: Store, observer: Observer, clock: Clock
    ) -> None:
        """Continues after the stored samples.

        Args:
            record: The experiment, with the samples of earlier attempts.
            session: Where loads run.
            store: Gets the samples of every stretch and run as it ends.
            observer: Receives progress.
            clock: Started with the experiment.
        """
        self._record = record
        self._spec = record.spec
        self._session = session
        self._store = store
        self._observer = observer
        self._clock = clock
        self._plan = Plan(record.spec)
        self._race: Race = race_of(record)
        self._next_round = {workload.name: 0 for workload in self._spec.workloads}
        self._next_stretch = dict(self._next_round)
        self._next_block = 0
        self._runs_done = 0
        self._load_ns = 0
        self._elapsed_ns = 0
        for sample in record.samples:
            self._count(sample)
        for sample in record.without_uncounted_slots().samples:
            self._race.add(sample)

    def run(self) -> None:
        """Runs until every question is settled or the budget is used up.

        Raises:
            RunFailedError: if a whole stretch or block failed.
            BlklabError: if the session cannot continue.
        """
        first = True
        everyone = frozenset(self._labels)
        last: dict[str, frozenset[str]] = {}
        while True:
            standings = self._race.standings(self._blocks_left(), rounds_left=self._rounds_left())
            still_running = dict(standings.running)
            if standings.over:
                begun_anew = [self._mind_carry_over(name, ENDING) for name in list(self._spec.switched)]
                if any(begun_anew):
                    continue
                # An answer needs as many slots as it takes to see carry-over.
                still_running = {name: last[name] for name in self._untested(last)}
                if not still_running:
                    settled = {name: last.get(name, everyone) for name in self._spec.switched}
                    for name in standings.given_up:
                        settled.pop(name, None)
                    if self._long_slots_contradict(settled):
                        continue
                    return
            progressed = False
            block = self._next_block
            for workload in self._spec.workloads:
                running = still_running.get(workload.name, frozenset())
                if not running:
                    continue
                last[workload.name] = running
                if workload.name in self._spec.switched:
                    progressed |= self._run_stretch(workload, running, standings, first=first)
                else:
                    progressed |= self._run_block(workload, running, standings, block, first=first)
            first = False
            if not progressed:
                return

    def _run_stretch(
        self, workload: Workload, running: frozenset[str], standings: Standings, *, first: bool
    ) -> bool:
        """Runs a stretch if the budget permits one."""
        decision = self._spec.switched[workload.name]
        round_ns = (decision.slot_ns or 0) * len(running)
        number = self._next_stretch[workload.name]
        rounds = max(1, STRETCHES_NS[min(number, len(STRETCHES_NS) - 1)] // round_ns)
        left = self._rounds_left(running=len(running))[workload.name]
        if left is not None:
            rounds = min(rounds, left)
        if rounds < 1:
            if not first:
                return False
            rounds = 1
        stretch = self._stretch(workload, decision, running, rounds)
        current = (
            f"{workload.name}, {', '.join(label for label in self._labels if label in running)} in turns"
        )
        unit = SampleUnit(decision.slot_ns)
        self._tell(current, self._next_round[workload.name], standings, unit)
        started_ns = time.monotonic_ns()
        samples = self._run(stretch)
        self._elapsed_ns += time.monotonic_ns() - started_ns
        self._load_ns += stretch.length_ns
        self._keep(samples)
        if all(sample.status == "failed" for sample in samples):
            raise all_failed(f"slot of a stretch of {workload.name}", samples, self._record.run_id)
        self._mind_carry_over(workload.name, UNDER_WAY)
        return True

    def _untested(self, last: Mapping[str, frozenset[str]]) -> list[str]:
        """Switched workloads in which slots have not yet followed two different schedulers often enough."""
        return [
            name
            for name, running in last.items()
            if name in self._spec.switched
            and len(running) > 1
            and not carry_over(name, self._short_slots_of(name), ENDING.level).tests_all(running)
        ]

    def _slots_of(self, name: str) -> list[RunSample]:
        first_round = self._spec.switched[name].first_round
        return [
            sample
            for sample in self._record.samples
            if sample.cell.workload == name and sample.cell.block >= first_round
        ]

    def _short_slots_of(self, name: str) -> list[RunSample]:
        return [sample for sample in self._slots_of(name) if not sample.is_long_slot]

    def _long_slots_contradict(self, settled: Mapping[str, frozenset[str]]) -> bool:
        """Whether any of these workloads begins anew, given the schedulers that ran last in each."""
        begun_anew = [self._mind_long_slots(name, running) for name, running in settled.items()]
        return any(begun_anew)

    def _mind_long_slots(self, name: str, running: frozenset[str]) -> bool:
        """Compares two schedulers in long slots, once; begins anew if these contradict the short ones."""
        decision = self._spec.switched.get(name)
        if decision is None or 2 * (decision.slot_ns or 0) > LONG_SLOT_NS:
            return False  # Its slots are long themselves.
        if not any(sample.is_long_slot for sample in self._slots_of(name)):
            pair = self._first_two(name, running)
            if pair is None or not self._long_slots_fit():
                return False
            self._run_long_slots(name, pair)
        found = compare_long_slots(name, self._slots_of(name), decision.slot_ns or LONG_SLOT_NS)
        limit = ENDING.margins * math.log1p(self._spec.margin)
        if found is None or not found.contradicts(ENDING.level, limit):
            return False
        return self._begin_anew(name, decision, found.text)

    def _first_two(self, name: str, running: frozenset[str]) -> frozenset[str] | None:
        """The best of those that ran last, and the one that comes closest to it."""
        analysis = analyse(self._record)
        verdict = analysis.deciding(name)
        if verdict is None or len(running) < 2:
            return None
        pairs = [
            pair
            for pair in analysis.comparisons
            if (pair.workload, pair.metric) == (name, verdict.metric) and {pair.first, pair.second} <= running
        ]
        best = [label for label in verdict.best or verdict.candidates if label in running]
        close = [pair for pair in pairs if best and best[0] in (pair.first, pair.second)] or pairs
        if not close:
            return None
        closest = min(close, key=lambda pair: _log_size(pair.ratio))
        return frozenset((closest.first, closest.second))

    def _long_slots_fit(self) -> bool:
        """Whether a budget of time permits long slots; one of blocks does."""
        length_ns = 2 * LONG_ROUNDS * LONG_SLOT_NS
        return self._spec.budget_ns is None or self._clock.budget_left_ns() >= length_ns * self._overhead

    def _run_long_slots(self, name: str, pair: frozenset[str]) -> None:
        workload = self._spec.workload(name)
        long = SlotDecision(slot_ns=LONG_SLOT_NS, settling_ns=LONG_SLOT_NS // 2, reason="long slots")
        self._observer.announce(
            f"{name}: {' and '.join(label for label in self._labels if label in pair)} in slots of "
            f"{format_duration(LONG_SLOT_NS)}, to see whether the short ones tell the truth"
        )
        samples = self._run(self._stretch(workload, long, pair, LONG_ROUNDS))
        self._keep(
            [
                sample.model_copy(update={"slot": slot.model_copy(update={"long": True})})
                for sample in samples
                if (slot := sample.slot) is not None
            ]
        )

    def _run(self, stretch: Stretch) -> list[RunSample]:
        return self._with_promises(stretch, self._session.run_stretch(stretch))

    def _stretch(
        self, workload: Workload, decision: SlotDecision, running: frozenset[str], rounds: int
    ) -> Stretch:
        """The next stretch of a workload."""
        return stretch_of(
            workload,
            self._spec.schedulers,
            decision,
            seed=self._spec.seed,
            number=self._next_stretch[workload.name],
            first_round=self._next_round[workload.name],
            rounds=rounds,
            running=running,
            first_sequence=self._first_sequence(workload),
            sequence_step=self._plan.cells_per_block,
        )

    def _mind_carry_over(self, name: str, strictness: Strictness) -> bool:
        """Begins a workload anew with longer slots, or with runs, if one slot shows in the next."""
        decision = self._spec.switched.get(name)
        if decision is None:
            return False  # It has runs since another workload began anew: a goal needs one design for all.
        reason = influence(name, self._short_slots_of(name), strictness, self._spec.margin)
        return reason is not None and self._begin_anew(name, decision, reason)

    def _begin_anew(self, name: str, decision: SlotDecision, reason: str) -> bool:
        """Begins a workload anew with longer slots, or with runs, if the budget permits that."""
        left = self._rounds_left()[name]
        if left is not None and left < FEWEST_ROUNDS_ANEW * 2:
            return False  # too late to begin anew; the report says what was seen
        changed = lengthened(decision, reason, first_round=self._next_round[name])
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
        for sample in self._record.without_uncounted_slots().samples:
            self._race.add(sample)
        return True

    def _run_block(
        self,
        workload: Workload,
        running: frozenset[str],
        standings: Standings,
        number: int,
        *,
        first: bool,
    ) -> bool:
        """Runs the workload's part of a block if the budget permits that."""
        cells = [
            cell
            for cell in self._plan.block(number)
            if cell.workload.name == workload.name and cell.scheduler.label in running
        ]
        left = self._blocks_left(number)
        if not first and (not self._clock.block_fits(len(cells)) or (left is not None and left < 1)):
            return False
        samples = []
        for cell in cells:
            self._tell(f"{workload.name} under {cell.scheduler.label}", number, standings)
            started_ns = time.monotonic_ns()
            sample = with_promises(self._session.run(cell), cell, self._spec.cgroups)
            self._clock.add(time.monotonic_ns() - started_ns)
            samples.append(sample)
            self._keep([sample])
        if all(sample.status == "failed" for sample in samples):
            raise all_failed(f"run of block {number}", samples, self._record.run_id)
        return True

    @property
    def _labels(self) -> list[str]:
        return [choice.label for choice in self._spec.schedulers]

    def _first_sequence(self, workload: Workload) -> int:
        """Beyond the sequence of all runs, so that no slot takes the place of one."""
        place = [other.name for other in self._spec.workloads].index(workload.name)
        return MAX_BLOCKS * self._plan.cells_per_block + place * len(self._spec.schedulers)

    def _keep(self, samples: Sequence[RunSample]) -> None:
        self._store.add_samples(self._record.run_id, samples)
        self._record = self._record.model_copy(update={"samples": [*self._record.samples, *samples]})
        for sample in samples:
            self._observer.measured(sample)
            if not sample.is_long_slot:
                self._race.add(sample)
            self._count(sample)

    def _count(self, sample: RunSample) -> None:
        self._runs_done += 1
        name, number = sample.cell.workload, sample.cell.block
        if sample.slot is None:
            self._next_block = max(self._next_block, number + 1)
        else:
            self._next_round[name] = max(self._next_round[name], number + 1)
            self._next_stretch[name] = max(self._next_stretch[name], sample.slot.stretch + 1)

    def _with_promises(self, stretch: Stretch, samples: Sequence[RunSample]) -> list[RunSample]:
        return [
            with_promises(sample, Cell(slot.key, slot.scheduler, stretch.workload), self._spec.cgroups)
            for slot, sample in zip(stretch.slots, samples, strict=True)
        ]

    def _tell(self, current: str, number: int, standings: Standings, unit: SampleUnit = BLOCKS) -> None:
        left_ns = self._clock.budget_left_ns() if self._spec.budget_ns is not None else self._remaining_ns()
        self._observer.progressed(
            Progress(self._runs_done, None, number, left_ns, current, standings.open, unit)
        )

    def _remaining_ns(self) -> int | None:
        """Longest time that a budget of blocks leaves; None if unknown."""
        left = self._rounds_left()
        rounds_ns = [
            count * (self._spec.switched[name].slot_ns or 0) * len(self._labels)
            for name, count in left.items()
            if count is not None
        ]
        slots_ns = round(sum(rounds_ns) * self._overhead)
        if len(self._spec.switched) == len(self._spec.workloads):
            return slots_ns
        blocks, run_ns = self._blocks_left(), self._clock.expected_cell_ns()
        if blocks is None or run_ns is None:
            return None
        return slots_ns + blocks * self._runs_per_block * run_ns

    @property
    def _overhead(self) -> float:
        return self._elapsed_ns / self._load_ns if self._load_ns else _OVERHEAD

    def _blocks_left(self, number: int | None = None) -> int | None:
        """Blocks that the budget still permits, from this one or the next on."""
        begun = self._next_block if number is None else number
        return self._clock.blocks_left(begun, max(1, self._runs_per_block))

    @property
    def _runs_per_block(self) -> int:
        return len(self._labels) * (len(self._spec.workloads) - len(self._spec.switched))

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
                left[name] = max(0, self._spec.budget_blocks * per_run - self._next_round[name])
            else:
                left[name] = None
        return left


def _log_size(ratio: float) -> float:
    """Distance of a ratio from 1; infinite for slots that have no I/O at all."""
    return abs(math.log(ratio)) if ratio > 0 else math.inf
