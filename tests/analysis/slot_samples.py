"""Samples of slots that were never measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from blklab.records.samples import DirectionSample, JobSample, LatencyHistogram, RunSample, SlotSample
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.slots import SlotDecision
from blklab.spec.stretches import Slot, stretch_of
from blklab.spec.workloads import Workload
from blklab.testing.experiments import make_spec, make_workload

MS = 1_000_000
SLOT_MS, WINDOW_MS = 250, 25

Speed = Callable[[Sequence[Slot], int, int], float]
"""(slots of the stretch, place of the slot, window in it) → I/Os in that window."""


def switched_spec(labels: Sequence[str], workloads: Sequence[Workload] = ()) -> ExperimentSpec:
    """An experiment whose workloads are all switched."""
    chosen = list(workloads) or [make_workload("reads")]
    spec = make_spec([f"{label}=none" for label in labels], chosen, blocks=None)
    decision = SlotDecision(slot_ns=SLOT_MS * MS, reason="made up")
    slots = {workload.name: decision for workload in chosen}
    return spec.model_copy(update={"stopping": "settled", "budget_blocks": 18, "slots": slots})


def slot_samples(spec: ExperimentSpec, rounds: int, speed: Speed, *, seed: int = 1) -> list[RunSample]:
    """The samples of one stretch of each workload, with a log-normal latency for every I/O."""
    generator = np.random.default_rng(seed)
    samples = []
    for workload in spec.workloads:
        stretch = stretch_of(
            workload,
            spec.schedulers,
            spec.slots[workload.name],
            seed=spec.seed,
            number=0,
            first_round=0,
            rounds=rounds,
        )
        for place, slot in enumerate(stretch.slots):
            windows = [speed(stretch.slots, place, window) for window in range(SLOT_MS // WINDOW_MS)]
            samples.append(_sample(slot, workload, place, windows, generator))
    return samples


def _sample(
    slot: Slot, workload: Workload, place: int, windows: list[float], generator: np.random.Generator
) -> RunSample:
    ios = round(sum(windows))
    latencies = np.exp(generator.normal(11, 0.5, ios)).astype(int)
    values, counts = np.unique(latencies // 1024 * 1024 + 512, return_counts=True)
    histogram = LatencyHistogram(
        count=ios,
        sum_ns=float(latencies.sum()),
        min_ns=int(latencies.min()) if ios else 0,
        max_ns=int(latencies.max()) if ios else 0,
        bins=dict(zip(values.tolist(), counts.tolist(), strict=True)),
    )
    runtime_ns = SLOT_MS * MS
    direction = DirectionSample(
        direction="read", ios=ios, bytes=4096 * ios, runtime_ns=runtime_ns, latency=histogram
    )
    start_ns = place * SLOT_MS * MS
    return RunSample(
        cell=slot.key,
        status="ok",
        started_at="2024-05-17T09:30:00+00:00",
        elapsed_ns=runtime_ns,
        jobs=[JobSample(name=workload.focus[0], clones=1, runtime_ns=runtime_ns, directions=[direction])],
        slot=SlotSample(
            stretch=0,
            start_ns=start_ns,
            end_ns=start_ns + SLOT_MS * MS,
            switch_ns=0,
            kept_from_ns=start_ns,
            kept_to_ns=start_ns + SLOT_MS * MS,
            window_ns=WINDOW_MS * MS,
            ios=windows,
        ),
    )
