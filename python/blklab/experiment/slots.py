"""Decides for each workload whether schedulers take turns within its load, and how long a turn is.

A pilot of a few rounds with long slots shows how long each scheduler takes to settle after a switch on this
disk and under this load (`blklab.analysis.settling`).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from blklab.analysis.designs import AnytimeDesign, SwitchbackDesign
from blklab.analysis.metrics import metric_named
from blklab.analysis.settling import LARGEST_CUT, SHORTEST_SLOT_NS, settling_time, tail_latency_ns
from blklab.backends import Session
from blklab.experiment.blocks import Observer
from blklab.experiment.outlook import RUN_OVERHEAD_NS
from blklab.linux.load.fio import expected_runtime_ns
from blklab.quantities.units import NS_PER_SECOND, format_duration
from blklab.records.samples import RunSample, SlotSample
from blklab.report.sentences.slots import slot_decision
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.plan import derive_seed
from blklab.spec.slots import SlotDecision, slots_with_one_design, with_one_design
from blklab.spec.stretches import Stretch, stretch_of
from blklab.spec.workloads import Workload

PILOT_FAILED = "the pilot failed"
"""Begins the reason for runs where the pilot could not tell."""


@dataclass(frozen=True)
class Pilot:
    """Stretches with long slots, until they show settling well enough."""

    slot_ns: int
    fewest_slots: int
    """Of all schedulers together; and at least two rounds."""
    most_rounds: int
    largest_cut: float
    """Share of a slot that may be cut off. Shorter slots follow a wandering speed more closely."""
    resolution: float
    """Deviation from the plateau, as a fraction, that noise may still hide."""
    shortest_slot_ns: int
    """Least length of the experiment's slots."""


ON_A_DISK = Pilot(
    slot_ns=NS_PER_SECOND,
    fewest_slots=6,
    most_rounds=0,
    largest_cut=1 / 2,
    resolution=math.inf,
    shortest_slot_ns=NS_PER_SECOND // 10,
)
"""A disk's noise hides small changes from any pilot; the experiment's own slots are tested for those. The
shorter a slot, the less the disk's speed wanders from one to the next."""
ON_A_MODEL = Pilot(
    slot_ns=4 * NS_PER_SECOND,
    fewest_slots=6,
    most_rounds=32,
    largest_cut=LARGEST_CUT,
    resolution=0.01,
    shortest_slot_ns=SHORTEST_SLOT_NS,
)
"""kyber adapts after a second for the first time, and models are patient: their speed does not wander."""


def settle_slots(
    spec: ExperimentSpec, session: Session, observer: Observer, *, by_default: bool
) -> ExperimentSpec:
    """The experiment with a decision for each workload, unless all of it consists of runs.

    Args:
        spec: With its schedulers settled.
        session: Prepared.
        observer: Receives progress.
        by_default: Whether ``auto`` takes switchbacks on this target.

    Raises:
        BlklabError: if the pilot cannot run.
    """
    reasons = reasons_for_runs(spec, session, by_default=by_default)
    if spec.slots or reasons is None:
        return spec
    slots = {}
    for workload in spec.workloads:
        reason = reasons[workload.name]
        if reason is None:
            observer.announce(f"{workload.name}: a pilot shows how fast schedulers settle after a switch")
            pilot = ON_A_DISK if by_default else ON_A_MODEL
            slots[workload.name] = piloted(spec, workload, session, pilot)
        else:
            slots[workload.name] = SlotDecision(reason=reason)
    if spec.goal is not None:
        slots = slots_with_one_design(slots)
    return spec.model_copy(update={"slots": slots})


def reasons_for_runs(
    spec: ExperimentSpec, session: Session, *, by_default: bool
) -> Mapping[str, str | None] | None:
    """Why a workload needs a run for each scheduler, by workload; None for those that may be switched.

    Args:
        spec: With its schedulers settled.
        session: Opened; may be dry.
        by_default: Whether ``auto`` takes switchbacks on this target.

    Returns:
        None if the whole experiment consists of runs because that was asked for.
    """
    if spec.design == "runs" or (spec.design == "auto" and not by_default):
        return None
    if spec.blocks is not None or (spec.budget_ns is None and spec.budget_blocks is None):
        return None
    whole = "the cells of a sweep are compared as runs" if spec.sweeps else None
    reasons = {
        workload.name: whole or session.unswitchable(workload) or _raised_weights(spec, workload)
        for workload in spec.workloads
    }
    return reasons if spec.goal is None else with_one_design(reasons)


def _raised_weights(spec: ExperimentSpec, workload: Workload) -> str | None:
    """Why bfq cannot take turns under a load of different jobs.

    It raises the weights of what looks new, for 3 to 25 s (``bfq_wr_duration``, block/bfq-iosched.c of
    Linux 6.1), and after a switch everything does. If all processes do the same, all have the same weight.
    """
    raising = [
        choice.label
        for choice in spec.schedulers
        if choice.name == "bfq" and choice.tunables.get("low_latency") != "0"
    ]
    if not raising or len(workload.jobs) < 2:
        return None
    return (
        f"{raising[0]} favours some of its jobs for up to 25 s after a switch, because all look new "
        "(bfq:low_latency=0 does not)"
    )


def first_round(spec: ExperimentSpec, workload: Workload) -> Stretch:
    """A round as the first one will be, in slots of the pilot's length."""
    decision = SlotDecision(slot_ns=ON_A_DISK.slot_ns, reason="a plan")
    return stretch_of(workload, spec.schedulers, decision, seed=spec.seed, number=0, first_round=0, rounds=1)


def slots_per_run(workload: Workload, decision: SlotDecision, runtime_ns: int | None) -> int:
    """How many slots take as long as one run of the workload, at least one."""
    run_ns = _run_ns(workload, runtime_ns)
    return max(1, run_ns // (decision.slot_ns or run_ns))


def _run_ns(workload: Workload, runtime_ns: int | None) -> int:
    return expected_runtime_ns(workload, runtime_ns) or NS_PER_SECOND


def piloted(spec: ExperimentSpec, workload: Workload, session: Session, pilot: Pilot) -> SlotDecision:
    """Finds the slots of one workload, or the reason why it has runs.

    Args:
        spec: With its schedulers settled.
        workload: One that may be switched.
        session: Prepared.
        pilot: How long and how precise.

    Raises:
        BlklabError: if the pilot cannot run.
    """
    samples: list[RunSample] = []
    rounds = max(2, math.ceil(pilot.fewest_slots / len(spec.schedulers)))
    while True:
        stretch = stretch_of(
            workload,
            spec.schedulers,
            SlotDecision(slot_ns=pilot.slot_ns, reason="pilot"),
            seed=derive_seed(spec.seed, "pilot", len(samples)),
            number=0,
            first_round=0,
            rounds=rounds,
        )
        more = session.run_stretch(stretch)
        failed = [sample for sample in more if sample.slot is None or not sample.slot.ios]
        if failed:
            return SlotDecision(reason=f"{PILOT_FAILED}: {failed[0].error}")
        samples += more
        made = len(samples) // len(spec.schedulers)
        found = settling_time(
            slots_by_scheduler(samples),
            tail_latency_ns=tail_latency_ns(samples, jobs=workload.focus),
            largest_cut=pilot.largest_cut,
            shortest_slot_ns=pilot.shortest_slot_ns,
        )
        if found.resolution <= pilot.resolution or 2 * made > pilot.most_rounds:
            return _within_budget(spec, workload, slot_decision(found), samples)
        rounds = made


def _within_budget(
    spec: ExperimentSpec, workload: Workload, decision: SlotDecision, pilot: Sequence[RunSample]
) -> SlotDecision:
    """Runs instead, if the budget permits fewer rounds than an answer takes and runs come closer to one."""
    if decision.slot_ns is None or spec.design != "auto":
        return decision
    schedulers = len(spec.schedulers)
    asked = math.comb(schedulers, 2) * len(spec.workloads)
    slots = SwitchbackDesign(confidence=spec.confidence, margin=spec.margin, nr_questions=asked)
    runs = AnytimeDesign(confidence=spec.confidence, margin=spec.margin, nr_questions=asked)
    rounds_needed = slots.fewest_samples * _rounds_per_value(workload, decision, pilot)
    if spec.budget_ns is not None:
        share_ns = spec.budget_ns // len(spec.workloads) // schedulers
        rounds = share_ns // decision.slot_ns
        blocks = share_ns // (_run_ns(workload, spec.runtime_ns) + RUN_OVERHEAD_NS)
    else:
        blocks = spec.budget_blocks or 0
        rounds = blocks * slots_per_run(workload, decision, spec.runtime_ns)
    if rounds >= rounds_needed or rounds / rounds_needed >= blocks / runs.fewest_samples:
        return decision
    return SlotDecision(
        reason=f"slots would have to last {format_duration(decision.slot_ns)} ({decision.reason}); the "
        f"budget permits {rounds} rounds of them, and an answer takes at least {rounds_needed}"
    )


def _rounds_per_value(workload: Workload, decision: SlotDecision, pilot: Sequence[RunSample]) -> int:
    """Rounds that a value of the deciding metric covers, by the slowest scheduler's I/Os in the pilot."""
    metric = metric_named(workload.decide_by)
    per_slot: dict[str, list[float]] = {}
    for sample in pilot:
        jobs = [job for job in sample.jobs if job.name in workload.focus]
        kept_ns = max((job.runtime_ns for job in jobs), default=0)
        if kept_ns:
            share = ((decision.slot_ns or 0) - decision.settling_ns) / kept_ns
            per_slot.setdefault(sample.cell.scheduler, []).append(metric.counted_ios(jobs) * share)
    fewest = min((statistics.median(counts) for counts in per_slot.values()), default=1.0)
    return max(1, math.ceil(metric.fewest_ios / max(1.0, fewest)))


def slots_by_scheduler(samples: Sequence[RunSample]) -> dict[str, list[SlotSample]]:
    """The slots among samples, by the label of their scheduler."""
    grouped: dict[str, list[SlotSample]] = {}
    for sample in samples:
        if sample.slot is not None:
            grouped.setdefault(sample.cell.scheduler, []).append(sample.slot)
    return grouped
