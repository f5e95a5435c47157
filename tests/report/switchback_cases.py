"""Switchbacks that never ran, from a seed: a load that drifts, dips at switches and differs by scheduler."""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from blklab.quantities.units import NS_PER_SECOND
from blklab.records.experiment import ExperimentRecord
from blklab.records.machine_events import MachineEvents
from blklab.records.samples import DirectionSample, JobSample, LatencyHistogram, RunSample, SlotSample
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.slots import SlotDecision
from blklab.spec.stretches import Slot, Stretch, stretch_of
from blklab.spec.workloads import Workload
from blklab.testing.experiments import (
    QUIET,
    WorkloadBehaviour,
    bin_value_ns,
    make_experiment,
    make_spec,
    make_workload,
)

READS = make_workload("random-read-4k-qd32", source="random-read-4k-qd32")
LOG = make_workload(
    "write-ahead-log",
    purpose="A database's log: one writer, fdatasync after each write.",
    decide_by="sync_latency_p99",
    reads=False,
    syncs=True,
    iodepth=1,
)

MS = 1_000_000
SLOTS = SlotDecision(
    slot_ns=250 * MS,
    settling_ns=50 * MS,
    reason="the slowest scheduler, bfq, settles within 40 ms of a switch",
)
RUNS = SlotDecision(reason="fdatasync after each write empties the queue at every switch")

SPEEDS = {"none": 1.0, "mq-deadline": 0.996, "kyber": 0.95, "bfq": 0.8}
WINDOW_NS = 10 * MS
ROUNDS_OF_STRETCHES = (8, 8, 8, 8, 8)

_IOS_PER_SECOND = 12_000.0
_SWITCH_NS = 28 * MS
_DIPS: Mapping[str, tuple[float, ...]] = {"bfq": (0.0, 0.05, 0.3, 0.7)}
_DIP = (0.0, 0.1, 0.5)
"""Share of the plateau's speed in the first windows of a slot."""
_START = datetime.datetime(2024, 5, 17, 9, 30, tzinfo=datetime.timezone.utc)


def switched_spec(
    workloads: Sequence[Workload] = (READS,), slots: Mapping[str, SlotDecision] | None = None
) -> ExperimentSpec:
    """Four schedulers that race under a budget of time; slots of a quarter of a second."""
    spec = make_spec(list(SPEEDS), workloads, blocks=None, budget_ns=90 * NS_PER_SECOND)
    return spec.model_copy(update={"stopping": "settled", "slots": dict(slots or {READS.name: SLOTS})})


def switchback(
    *,
    speeds: Mapping[str, float] = SPEEDS,
    rounds: Sequence[int] = ROUNDS_OF_STRETCHES,
    failed_stretch: int | None = None,
    events: Mapping[int, MachineEvents] | None = None,
) -> ExperimentRecord:
    """One workload whose schedulers take turns.

    Args:
        speeds: By scheduler, relative to the disk's.
        rounds: Of each stretch.
        failed_stretch: The stretch whose load failed.
        events: Of the machine in some stretches; in the others it was quiet. None: it was not watched.
    """
    spec = switched_spec()
    samples = []
    for stretch in _stretches(spec, rounds):
        made = _samples(stretch, speeds, sum(rounds), failed=stretch.number == failed_stretch)
        if events is not None:
            seen = events.get(stretch.number, QUIET)
            made = [
                sample.model_copy(update={"events": seen}) if sample.status == "ok" else sample
                for sample in made
            ]
        samples += made
    return _record(spec, samples)


def undecided() -> ExperimentRecord:
    """Two schedulers too close to tell apart, two that are beaten."""
    return switchback()


def mixed() -> ExperimentRecord:
    """One workload in slots, another that fell back to runs in blocks."""
    spec = switched_spec([READS, LOG], {READS.name: SLOTS, LOG.name: RUNS})
    slots = [
        sample
        for stretch in _stretches(spec, ROUNDS_OF_STRETCHES[:3])
        for sample in _samples(stretch, SPEEDS, sum(ROUNDS_OF_STRETCHES[:3]))
    ]
    runs = make_experiment(
        make_spec(list(SPEEDS), [LOG], blocks=6), workloads={LOG.name: WorkloadBehaviour(90, 1, 0.6)}
    )
    return _record(spec, [*runs.samples, *slots])


def troubled() -> ExperimentRecord:
    """One stretch failed, another was disturbed."""
    stolen = QUIET.model_copy(update={"steal_fraction": 0.2})
    return switchback(failed_stretch=1, events={3: stolen})


def short() -> ExperimentRecord:
    """Stopped by a signal in the first stretch."""
    return switchback(rounds=(2,)).model_copy(update={"state": "interrupted"})


def lengthened() -> ExperimentRecord:
    """The slots of the first two stretches turned out too short."""
    record = switchback()
    longer = SLOTS.model_copy(
        update={"first_round": 16, "reason": "in shorter slots, bfq still shows in the slot after it"}
    )
    return record.model_copy(update={"spec": record.spec.model_copy(update={"slots": {READS.name: longer}})})


SWITCHBACKS = {case.__name__: case for case in (undecided, mixed, troubled, short, lengthened)}


def _record(spec: ExperimentSpec, samples: list[RunSample]) -> ExperimentRecord:
    return make_experiment(spec, blocks_made=0).model_copy(update={"samples": samples})


def _stretches(spec: ExperimentSpec, rounds: Sequence[int]) -> list[Stretch]:
    return [
        stretch_of(
            READS,
            spec.schedulers,
            SLOTS,
            seed=spec.seed,
            number=number,
            first_round=first,
            rounds=count,
            first_sequence=100,
        )
        for number, (first, count) in enumerate(
            zip(itertools.accumulate(rounds, initial=0), rounds, strict=False)
        )
    ]


def _samples(
    stretch: Stretch, speeds: Mapping[str, float], rounds: int, *, failed: bool = False
) -> list[RunSample]:
    generator = np.random.default_rng([stretch.seed, stretch.number])
    wander = 0.0
    samples = []
    for index, slot in enumerate(stretch.slots):
        # A disk that slows down by a tenth, wanders slowly, and scatters.
        wander = 0.9 * wander + generator.normal(0, 0.008)
        level = math.exp(-0.1 * slot.key.block / rounds + wander + generator.normal(0, 0.012))
        label = slot.scheduler.label
        rate = _IOS_PER_SECOND * speeds[label] * level
        samples.append(_sample(stretch, index, slot, rate, generator, failed=failed))
    return samples


def _sample(
    stretch: Stretch, index: int, slot: Slot, rate: float, generator: np.random.Generator, *, failed: bool
) -> RunSample:
    start_ns = index * stretch.slot_ns
    kept_from_ns, end_ns = start_ns + stretch.settling_ns, start_ns + stretch.slot_ns
    shares = np.ones(stretch.slot_ns // WINDOW_NS)
    dip = _DIPS.get(slot.scheduler.label, _DIP)
    shares[: len(dip)] = dip
    ios = shares * rate * WINDOW_NS / NS_PER_SECOND * np.exp(generator.normal(0, 0.06, len(shares)))
    kept = float(ios[stretch.settling_ns // WINDOW_NS :].sum())
    started_at = _START + datetime.timedelta(seconds=9 * stretch.number + start_ns / NS_PER_SECOND)
    return RunSample(
        cell=slot.key,
        status="failed" if failed else "ok",
        error="fio: io_u error on file data: Input/output error" if failed else None,
        started_at=started_at.isoformat(timespec="milliseconds"),
        elapsed_ns=stretch.slot_ns,
        jobs=[] if failed else [_job(kept, end_ns - kept_from_ns, generator)],
        settings={"vda/scheduler": slot.scheduler.name},
        engine={"name": "fio", "version": "3.33"},
        slot=SlotSample(
            stretch=stretch.number,
            start_ns=start_ns,
            end_ns=end_ns,
            switch_ns=0 if failed else round(_SWITCH_NS * math.exp(generator.normal(0, 0.1))),
            kept_from_ns=kept_from_ns,
            kept_to_ns=end_ns,
            window_ns=WINDOW_NS,
            ios=[] if failed else [round(float(count), 2) for count in ios],
        ),
    )


def _job(ios: float, runtime_ns: int, generator: np.random.Generator) -> JobSample:
    mean_ns = 32 * runtime_ns / ios
    latencies = np.exp(generator.normal(math.log(mean_ns) - 0.1, 0.45, 300)).astype(np.int64)
    bins: dict[int, int] = {}
    for value_ns in latencies.tolist():
        bins[bin_value_ns(value_ns)] = bins.get(bin_value_ns(value_ns), 0) + 1
    reads = DirectionSample(
        direction="read",
        ios=round(ios),
        bytes=round(ios) * 4096,
        runtime_ns=runtime_ns,
        latency=LatencyHistogram(
            count=len(latencies),
            sum_ns=float(latencies.sum()),
            min_ns=int(latencies.min()),
            max_ns=int(latencies.max()),
            bins=dict(sorted(bins.items())),
        ),
    )
    return JobSample(name="reader", clones=1, runtime_ns=runtime_ns, directions=[reads])
