"""Parts of the document on an experiment's course: why it stopped, which schedulers left early, its noise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from blklab.analysis.noise import WorkloadNoise
from blklab.analysis.statistics.linear_trend import TrendChange
from blklab.records.experiment import ExperimentRecord
from blklab.report.documents.parts import Part
from blklab.spec.slots import SlotDecision


class DeparturePart(Part):
    """A scheduler that left a workload because another proved better."""

    workload: str
    scheduler: str
    blocks: int
    """Blocks or rounds in which it ran."""
    switched: bool = False
    """Whether these are rounds."""


class StoppingPart(Part):
    """Why there are as many blocks as there are."""

    rule: Literal["fixed", "settled"]
    """`fixed`: a number set beforehand; `settled`: added until each question was settled, and the p values
    and intervals allow for that."""
    budget_blocks: int | None
    budget_seconds: float | None
    departures: list[DeparturePart]
    good_enough: float | None = None
    """The loss at which no more blocks are added; None if there is none."""


class OutlierPart(Part):
    """A run far from the others of its scheduler. It counts like any other."""

    scheduler: str
    block: int
    ratio: float
    """Figure over the scheduler's median."""


class NoisePart(Part):
    """The noise of the metric that decides a workload."""

    workload: str
    metric: str
    drift: float | None
    """Relative change from the first block to the last, e.g. -0.12."""
    drift_p: float | None
    first_run: float | None
    """The first run of a block against its others, e.g. -0.8."""
    first_run_p: float | None
    correlation: float | None
    """Of the log ratios of neighbouring blocks."""
    widened_by: float
    """Factor by which the correlation widened the widest interval."""
    outliers: list[OutlierPart]
    slot_ns: int | None = None
    """Length of the workload's slots, whose rounds take the place of blocks; None if it has runs."""


def stopping_part(record: ExperimentRecord) -> StoppingPart:
    """Why there are as many blocks as there are, and who left early."""
    spec = record.spec
    departures = []
    if spec.stops_when_settled:
        for workload in spec.workloads:
            ran = {
                choice.label: sum(
                    1
                    for sample in record.samples
                    if (sample.cell.workload, sample.cell.scheduler) == (workload.name, choice.label)
                )
                for choice in spec.schedulers
            }
            most = max(ran.values(), default=0)
            # One fewer may be an aborted block; a scheduler drops out after three blocks or more.
            complete = record.state == "complete"
            departures += [
                DeparturePart(
                    workload=workload.name,
                    scheduler=label,
                    blocks=blocks,
                    switched=workload.name in spec.switched,
                )
                for label, blocks in ran.items()
                if 0 < blocks < most - (0 if complete else 1)
            ]
    return StoppingPart(
        rule=spec.stopping,
        budget_blocks=spec.budget_blocks,
        budget_seconds=None if spec.budget_ns is None else spec.budget_ns / 1e9,
        departures=departures,
        good_enough=spec.good_enough,
    )


def noise_parts(
    noise: Sequence[WorkloadNoise], slots: Mapping[str, SlotDecision] | None = None
) -> list[NoisePart]:
    """The noise of every workload that has values, in the documented form.

    Args:
        noise: As found.
        slots: Of the switched workloads, by name.
    """
    slots = slots or {}
    return [
        _noise_part(found, slots[found.workload].slot_ns if found.workload in slots else None)
        for found in noise
    ]


def _noise_part(found: WorkloadNoise, slot_ns: int | None) -> NoisePart:
    noise = found.noise

    def change(trend: TrendChange | None) -> float | None:
        return None if trend is None else math.expm1(trend.size)

    return NoisePart(
        workload=found.workload,
        metric=found.metric,
        drift=change(noise.drift),
        drift_p=None if noise.drift is None else noise.drift.p,
        first_run=change(noise.first_run),
        first_run_p=None if noise.first_run is None else noise.first_run.p,
        correlation=noise.correlation,
        widened_by=noise.widened_by,
        outliers=[OutlierPart.of(outlier) for outlier in noise.outliers],
        slot_ns=slot_ns,
    )
