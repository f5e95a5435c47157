"""Slots of switchbacks: how many make a stretch, and when they are too short to be believed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from blklab.analysis.carry_over import carry_over
from blklab.analysis.long_slots import LONG_SLOT_NS
from blklab.analysis.verdict import Analysis
from blklab.quantities.units import NS_PER_SECOND, format_duration
from blklab.records.samples import RunSample
from blklab.report.sentences.slots import carry_over_text
from blklab.spec.slots import SlotDecision

STRETCHES_NS = (8 * NS_PER_SECOND, 8 * NS_PER_SECOND, 16 * NS_PER_SECOND)
"""Lengths of the first stretches, the last one also of all further ones.

Short ones show results sooner, but each costs the start of a load.
"""
LONGEST_AFTER_CARRY_OVER_NS = 4 * NS_PER_SECOND
"""Slots that influence one another are lengthened up to this; beyond, they have no advantage over runs."""
LONG_SLOTS = SlotDecision(slot_ns=LONG_SLOT_NS, settling_ns=LONG_SLOT_NS // 2, reason="long slots")
"""Slots that only show how a scheduler does when left alone."""
FEWEST_ROUNDS_ANEW = 12
"""Rounds of longer slots that the budget must still permit."""


@dataclass(frozen=True)
class Strictness:
    """How clear carry-over must be to begin anew."""

    level: float
    margins: float
    """Smaller carry-over than so many margins of practical equality is left to the report."""

    def limit(self, margin: float) -> float:
        """The largest log ratio that is left to the report, at a margin given as a fraction."""
        return self.margins * math.log1p(margin)


INTERIM_CHECK = Strictness(level=0.01, margins=2.0)
"""After every stretch."""
FINAL_CHECK = Strictness(level=0.05, margins=1.0)
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
    limit = strictness.limit(margin)
    return carry_over_text(found) if any(_log_size(one.ratio) > limit for one in found.seen) else None


def tests_carry_over(workload: str, samples: Sequence[RunSample], running: frozenset[str]) -> bool:
    """Whether slots have followed two different schedulers often enough for the final check."""
    return len(running) < 2 or carry_over(workload, samples, FINAL_CHECK.level).tests_all(running)


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


def rounds_of_stretch(number: int, round_ns: int) -> int:
    """Rounds of a workload's stretch of that number, at least one."""
    return max(1, STRETCHES_NS[min(number, len(STRETCHES_NS) - 1)] // round_ns)


def closest_pair(analysis: Analysis, workload: str, running: frozenset[str]) -> frozenset[str] | None:
    """The best of the schedulers that ran last, and the one that comes closest to it; None if unknown."""
    verdict = analysis.deciding(workload)
    if verdict is None or len(running) < 2:
        return None
    pairs = [
        pair
        for pair in analysis.comparisons
        if (pair.workload, pair.metric) == (workload, verdict.metric) and {pair.first, pair.second} <= running
    ]
    best = [label for label in verdict.best or verdict.candidates if label in running]
    close = [pair for pair in pairs if best and best[0] in (pair.first, pair.second)] or pairs
    if not close:
        return None
    closest = min(close, key=lambda pair: _log_size(pair.ratio))
    return frozenset((closest.first, closest.second))


def as_long_slots(samples: Sequence[RunSample]) -> list[RunSample]:
    """The samples of a stretch of long slots, marked so that no value rests on them."""
    return [
        sample.model_copy(update={"slot": slot.model_copy(update={"long": True})})
        for sample in samples
        if (slot := sample.slot) is not None
    ]


class SlotHistory:
    """Rounds and stretches that were made, and of the slots what checks of carry-over need."""

    def __init__(self, workloads: Sequence[str]) -> None:
        self.next_round = dict.fromkeys(workloads, 0)
        self.next_stretch = dict.fromkeys(workloads, 0)
        self._slots: Mapping[str, list[RunSample]] = {name: [] for name in workloads}

    def add(self, sample: RunSample) -> None:
        """Counts a slot."""
        if sample.slot is None:
            return
        name = sample.cell.workload
        self.next_round[name] = max(self.next_round[name], sample.cell.block + 1)
        self.next_stretch[name] = max(self.next_stretch[name], sample.slot.stretch + 1)
        # The rest of it is in the store.
        bare: dict[str, Any] = {"jobs": [], "settings": {}, "engine": {}, "events": None}
        self._slots[name].append(sample.model_copy(update=bare))

    def slots(self, workload: str, decision: SlotDecision) -> list[RunSample]:
        """Those since the decision was made."""
        return [one for one in self._slots[workload] if one.cell.block >= decision.first_round]

    def short_slots(self, workload: str, decision: SlotDecision) -> list[RunSample]:
        """The same without the long ones."""
        return [one for one in self.slots(workload, decision) if not one.is_long_slot]


def _log_size(ratio: float) -> float:
    """Distance of a ratio from 1; infinite for slots that have no I/O at all."""
    return abs(math.log(ratio)) if ratio > 0 else math.inf
