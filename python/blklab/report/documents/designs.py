"""Part of the document on how each workload's samples were taken: in runs, or in slots of one load."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Literal

from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import RunSample, SlotSample
from blklab.report.documents.parts import Part
from blklab.spec.slots import SlotDecision


class DesignPart(Part):
    """The design of one workload and the reason for it."""

    workload: str
    design: Literal["runs", "switchback"]
    reason: str
    """One line for people."""
    slot_ns: int | None
    """Length of a slot; None for runs."""
    settling_ns: int
    """Beginning of each slot that is cut off; 0 for runs."""
    rounds: int
    """Rounds, or blocks of runs, of the scheduler that has most."""
    samples: int
    """Slots or runs, failed ones included."""
    stretches: int
    """Continuous loads; 0 for runs."""
    load_ns: int
    """Length of all slots together; for runs the time that they took, set-up included."""
    switch_median_ns: int | None
    """Median time that setting a scheduler and its tunables took; None for runs."""
    switch_longest_ns: int | None
    abandoned: int = 0
    """Earlier slots that turned out too short; they are stored, and count in no other figure."""
    long_slots: int = 0
    """Slots of some seconds that only check the short ones; likewise."""


def design_parts(record: ExperimentRecord) -> list[DesignPart]:
    """One part for each workload whose design was decided; empty for experiments that know runs only."""
    kept = record.without_uncounted_slots()
    return [
        _design_part(
            workload.name,
            record.spec.slots[workload.name],
            [sample for sample in kept.samples if sample.cell.workload == workload.name],
            [sample for sample in record.samples if sample.cell.workload == workload.name],
        )
        for workload in record.spec.workloads
        if workload.name in record.spec.slots
    ]


def _design_part(
    workload: str, decision: SlotDecision, samples: Sequence[RunSample], stored: Sequence[RunSample]
) -> DesignPart:
    slots = [sample.slot for sample in samples if sample.slot is not None]
    used = [slot for slot in slots if slot.ios]
    switched = decision.slot_ns is not None
    switches_ns = [slot.switch_ns for slot in used]
    long_slots = sum(1 for sample in stored if sample.is_long_slot)
    counts: dict[str, int] = {}
    for sample in samples:
        counts[sample.cell.scheduler] = counts.get(sample.cell.scheduler, 0) + 1
    return DesignPart(
        workload=workload,
        design="switchback" if switched else "runs",
        reason=decision.reason,
        slot_ns=decision.slot_ns,
        settling_ns=decision.settling_ns if switched else 0,
        rounds=max(counts.values(), default=0),
        samples=len(samples),
        stretches=len({slot.stretch for slot in slots}),
        load_ns=_length_ns(used) if switched else sum(sample.elapsed_ns for sample in samples),
        switch_median_ns=round(statistics.median(switches_ns)) if switches_ns else None,
        switch_longest_ns=max(switches_ns, default=None),
        abandoned=len(stored) - len(samples) - long_slots,
        long_slots=long_slots,
    )


def _length_ns(slots: Sequence[SlotSample]) -> int:
    return sum(slot.end_ns - slot.start_ns for slot in slots)
