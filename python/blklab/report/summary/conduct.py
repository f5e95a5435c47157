"""The course of an experiment: why it stopped when it did, which schedulers left early, and its noise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from blklab.analysis.noise import WorkloadNoise
from blklab.analysis.statistics.linear_trend import TrendChange
from blklab.quantities.formatting import count_of, join_names
from blklab.quantities.sample_units import BLOCKS, SampleUnit
from blklab.records.experiment import ExperimentRecord
from blklab.report.documents.parts import Part
from blklab.spec.slots import SlotDecision

NOTABLE_P = 0.01
"""Reports mention an effect in the noise below this p value. No such effect changes a verdict."""
NOTABLE_CHANGE = 0.01
MOST_OUTLIERS_NAMED = 3


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


def stopping_sentence(
    part: StoppingPart,
    *,
    still_open: bool,
    units: Sequence[SampleUnit] = (BLOCKS,),
    good_enough: str | None = None,
) -> str | None:
    """Why blocks or rounds stopped being added; None for a fixed number of blocks.

    Args:
        part: The stopping rule and who left early.
        still_open: Whether a workload that counts is undecided.
        units: Kinds of samples that the experiment has.
        good_enough: A scheduler that is known to be close enough to the best, if one is.
    """
    if part.rule == "fixed":
        return None
    added = " and ".join(f"{unit.name}s" for unit in units).capitalize()
    text = f"{added} were added until everything was settled"
    if good_enough is not None and part.good_enough is not None:
        text = f"{added} were added until {good_enough} was known to be good enough"
    elif still_open:
        text = f"{added} were added until the budget was used up or could no longer settle the rest"
    return "; ".join([text, *_departure_clauses(part.departures)]) + "."


def _departure_clauses(departures: Sequence[DeparturePart]) -> list[str]:
    """A clause for each group of schedulers that left the same workloads after as many blocks or rounds."""
    leavers: dict[tuple[str, str], list[str]] = {}
    for one in departures:
        unit = "round" if one.switched else "block"
        leavers.setdefault((one.workload, count_of(one.blocks, unit)), []).append(one.scheduler)
    workloads: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (workload, made), names in leavers.items():
        workloads.setdefault((made, tuple(names)), []).append(workload)
    return [
        f"{join_names(names)} left {join_names(found)} after {made}"
        for (made, names), found in workloads.items()
    ]


def noise_kinds(parts: Sequence[NoisePart]) -> list[str]:
    """The kinds of notable noise in an experiment, each with the number of workloads it was found in."""
    correlated = [part for part in parts if _is_correlated(part)]
    neighbours = " and ".join(sorted({f"{_unit(part).name}s" for part in correlated}))
    kinds = {
        "drift": [_notable(part.drift, part.drift_p) for part in parts],
        "effects of order": [_notable(part.first_run, part.first_run_p) for part in parts],
        f"correlated {neighbours}": [_is_correlated(part) for part in parts],
        "outliers": [bool(part.outliers) for part in parts],
    }
    return [f"{kind} in {count_of(sum(found), 'workload')}" for kind, found in kinds.items() if any(found)]


def noise_sentences(parts: Sequence[NoisePart], workload: str) -> list[str]:
    """A sentence for each notable effect in the noise of a workload; usually none."""
    part = next((part for part in parts if part.workload == workload), None)
    if part is None:
        return []
    block, run = _unit(part).name, _unit(part).part
    sentences = []
    if _notable(part.drift, part.drift_p):
        sentences.append(
            f"drift: {_percent(part.drift)} from the first {block} to the last (it cancels out in "
            f"comparisons within {block}s)"
        )
    if _notable(part.first_run, part.first_run_p):
        sentences.append(
            f"order: the first {run} of a {block} is at {_percent(part.first_run)} against the others; "
            "something warms up or fills up"
        )
    if _is_correlated(part):
        sentences.append(
            f"correlation: neighbouring {block}s are alike (up to {part.correlation:.2f}, of the log "
            f"ratios), so intervals were widened up to {part.widened_by:.1f} times"
        )
    if part.outliers:
        named = [
            f"{block} {one.block + 1} {one.scheduler} ({one.ratio:.2g} of its median)"
            for one in part.outliers[:MOST_OUTLIERS_NAMED]
        ]
        more = len(part.outliers) - len(named)
        if more:
            named.append(f"{more} more")
        sentences.append(f"outliers, which count like any other {run}: {join_names(named)}")
    return sentences


def _unit(part: NoisePart) -> SampleUnit:
    return SampleUnit(part.slot_ns)


def _is_correlated(part: NoisePart) -> bool:
    return part.widened_by > 1 and part.correlation is not None


def _notable(change: float | None, p: float | None) -> bool:
    return change is not None and p is not None and p < NOTABLE_P and abs(change) > NOTABLE_CHANGE


def _percent(change: float | None) -> str:
    return f"{100 * (change or 0):+.3g} %"
