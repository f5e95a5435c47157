"""A switchback: schedulers take turns within one continuous load. Pure: equal arguments give equal slots.

The load runs in stretches of some seconds. A stretch is a sequence of rounds; in each round every scheduler
has one slot. The order of each round is drawn anew and evenly from all orders, so that under the hypothesis
that two schedulers are equal, their names within a round are a fair coin toss, independent of all other
rounds, however the speed of the disk wanders. That is all the tests of this design rest on (Bojinov,
Simchi-Levi and Zhao, *Design and Analysis of Switchback Experiments*, 2023).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from blklab.spec.plan import CellKey, derive_seed
from blklab.spec.schedulers import SchedulerChoice
from blklab.spec.slots import SlotDecision
from blklab.spec.workloads import Workload


@dataclass(frozen=True)
class Slot:
    """One scheduler's turn."""

    key: CellKey
    """`CellKey.block` is the round."""
    scheduler: SchedulerChoice


@dataclass(frozen=True)
class Stretch:
    """Slots that follow one another without a gap under one continuous load."""

    number: int
    """From 0, counted for each workload."""
    workload: Workload
    slots: list[Slot]
    slot_ns: int
    settling_ns: int
    seed: int
    """Of the load."""

    @property
    def length_ns(self) -> int:
        """Time of all slots."""
        return len(self.slots) * self.slot_ns


def stretch_of(
    workload: Workload,
    schedulers: Sequence[SchedulerChoice],
    decision: SlotDecision,
    *,
    seed: int,
    number: int,
    first_round: int,
    rounds: int,
    running: frozenset[str] | None = None,
    first_sequence: int = 0,
    sequence_step: int | None = None,
) -> Stretch:
    """The slots of a stretch.

    Args:
        workload: Its load.
        schedulers: All that are compared; the order in a round is drawn among all of them.
        decision: How long slots are; its `slot_ns` must not be None.
        seed: The experiment's.
        number: The stretch's.
        first_round: The number of its first round.
        rounds: Number of rounds.
        running: Labels of the schedulers that still run; None: all. Those that left do not change the order
            of the others.
        first_sequence: `CellKey.sequence` of the first position of round 0.
        sequence_step: Distance of two rounds in `CellKey.sequence`; by default the number of schedulers.
    """
    if decision.slot_ns is None:
        raise ValueError(f"{workload.name} has no slots")
    step = len(schedulers) if sequence_step is None else sequence_step
    load_seed = derive_seed(seed, "stretch", number, workload.name)
    slots = []
    for round_number in range(first_round, first_round + rounds):
        for position, choice in enumerate(_order(workload, schedulers, seed, round_number)):
            if running is not None and choice.label not in running:
                continue
            key = CellKey(
                block=round_number,
                sequence=first_sequence + round_number * step + position,
                position=position,
                workload=workload.name,
                scheduler=choice.label,
                seed=load_seed,
            )
            slots.append(Slot(key=key, scheduler=choice))
    return Stretch(
        number=number,
        workload=workload,
        slots=slots,
        slot_ns=decision.slot_ns,
        settling_ns=decision.settling_ns,
        seed=load_seed,
    )


def _order(
    workload: Workload, schedulers: Sequence[SchedulerChoice], seed: int, round_number: int
) -> list[SchedulerChoice]:
    choices = list(schedulers)
    random.Random(derive_seed(seed, "round", round_number, workload.name)).shuffle(choices)  # noqa: S311
    return choices
