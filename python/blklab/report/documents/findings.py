"""Parts of the document beside figures and pairs: goal, sweeps, the machine's events, steady state."""

from __future__ import annotations

from typing import Literal

from blklab.analysis.goal_parts import GoalLead
from blklab.analysis.goal_verdict import GoalFindings
from blklab.analysis.verdict import Analysis
from blklab.records.machine_events import MachineEvents
from blklab.records.samples import RunSample
from blklab.report.documents.parts import MeanPart, PairPart, Part, RatioPart
from blklab.report.sentences.goals import absent_text, lead_text
from blklab.report.sentences.machine import disturbance_text, sensitivity_text, typical_text
from blklab.report.sentences.sweeps import sweep_note_text


class FrontPart(Part):
    """A scheduler's standing on the Pareto front."""

    scheduler: str
    standing: Literal["front", "dominated", "open"]
    dominated_by: list[str]


class GoalSharePart(Part):
    """The part of one metric of one workload in the leader's score; all factors multiply to its ratio."""

    workload: str
    metric: str
    ratio: float
    """The leader over its rival."""
    ci_low: float | None
    ci_high: float | None
    factor: float
    """Above 1 it speaks for the leader."""


class GoalLeadPart(Part):
    """The leader's score against that of the nearest rival that it beats, or of the nearest of all."""

    first: str
    second: str
    parts: list[GoalSharePart]
    """The one that decided first."""
    text: str


class GoalPart(Part):
    """The goal, its scores and the metrics it is made of. The verdict of the document rests on the scores."""

    name: str
    goal: str
    """As ``--goal`` takes it."""
    weights: dict[str, float]
    reference: str
    """The scheduler whose score is 1."""
    scores: list[MeanPart]
    """Relative to the reference scheduler's."""
    comparisons: list[PairPart]
    """Over all workloads."""
    dimensions: list[str]
    dimension_comparisons: list[PairPart]
    front: list[FrontPart]
    """Empty if there is one dimension only."""
    conflict: bool
    absent: list[str]
    """Sentences on metrics that workloads do not have."""
    lead: GoalLeadPart | None = None
    """None if no other scheduler has a score."""


class EffectPart(RatioPart):
    """A main effect of a level against the default, or an interaction of two, as a ratio."""

    kind: Literal["main", "interaction"]
    workload: str
    levels: dict[str, str]


class SweepPart(Part):
    """A sweep of tunables: a full factorial with the defaults among its levels."""

    sweep: str
    scheduler: str
    levels: dict[str, list[str]]
    defaults: dict[str, str]
    cells: int
    effects: list[EffectPart]
    notes: list[str]


class DisturbancePart(Part):
    """A run or slot that something on the machine disturbed."""

    block: int
    workload: str
    scheduler: str
    text: str
    stretch: int | None = None
    """Of a slot, the number of its stretch."""


class SensitivityPart(Part):
    """The answer without the marked blocks."""

    status: Literal["best", "equal", "undecided", "withheld"]
    best: list[str]
    same: bool
    text: str


class MachineRunPart(Part):
    """The machine's events during one run, or during the slots that share them, from this one on."""

    sequence: int
    events: MachineEvents


class MachinePart(Part):
    """The machine's events during the runs, and the runs they disturbed."""

    watched_runs: int
    marked_blocks: list[int]
    """Numbers, from 0. Their runs are part of all figures."""
    disturbances: list[DisturbancePart]
    typical: list[str]
    sensitivity: SensitivityPart | None
    """None if no block is marked."""
    runs: list[MachineRunPart]


class SteadinessPart(Part):
    """The change in speed of a scheduler's runs from their first fifth to their last."""

    workload: str
    scheduler: str
    n: int
    change: float
    ci_low: float | None
    ci_high: float | None
    state: Literal["steady", "changing", "unclear"]
    warm_up_ns: int


def goal_part(found: GoalFindings | None) -> GoalPart | None:
    """The goal in the documented form."""
    if found is None:
        return None

    return GoalPart.of(
        found,
        name=found.goal.name,
        goal=found.goal.canonical,
        weights=found.goal.weights,
        scores=[MeanPart.of(result) for result in [*found.results, *found.dimension_results]],
        comparisons=[PairPart.of(pair) for pair in found.comparisons],
        dimension_comparisons=[PairPart.of(pair) for pair in found.dimension_comparisons],
        absent=[absent_text(one) for one in found.absent],
        lead=None if found.lead is None else _lead_part(found.lead),
    )


def _lead_part(lead: GoalLead) -> GoalLeadPart:
    return GoalLeadPart(
        first=lead.first,
        second=lead.second,
        parts=[
            GoalSharePart(
                workload=part.pair.workload,
                metric=part.pair.metric,
                ratio=part.pair.ratio,
                ci_low=part.pair.ci_low,
                ci_high=part.pair.ci_high,
                factor=part.factor,
            )
            for part in lead.parts
        ],
        text=lead_text(lead),
    )


def sweep_parts(analysis: Analysis) -> list[SweepPart]:
    """All sweeps in the documented form."""
    return [
        SweepPart(
            sweep=found.sweep.canonical,
            scheduler=found.sweep.base.label,
            levels=found.sweep.levels,
            defaults=found.sweep.defaults,
            cells=len(found.sweep.cells()),
            effects=[EffectPart.of(effect) for effect in found.effects],
            notes=[sweep_note_text(note) for note in found.notes],
        )
        for found in analysis.sweeps
    ]


def machine_part(analysis: Analysis, samples: list[RunSample]) -> MachinePart | None:
    """The machine's part; None if the machine was not watched."""
    found, other = analysis.machine, analysis.sensitivity
    if found is None:
        return None
    return MachinePart(
        watched_runs=found.watched,
        marked_blocks=found.blocks,
        disturbances=[DisturbancePart.of(one, text=disturbance_text(one)) for one in found.disturbances],
        typical=[typical_text(event) for event in found.typical],
        sensitivity=None if other is None else SensitivityPart.of(other, text=sensitivity_text(other)),
        runs=[
            MachineRunPart(sequence=sample.cell.sequence, events=events)
            for sample, events in _watched(samples)
        ],
    )


def _watched(samples: list[RunSample]) -> list[tuple[RunSample, MachineEvents]]:
    """The samples that have events; of slots that share those of their stretch, the first."""
    found: list[tuple[RunSample, MachineEvents]] = []
    for sample in samples:
        events = sample.events
        if events is None:
            continue
        shared = found and sample.slot is not None and _stretch(found[-1][0]) == _stretch(sample)
        if not shared or found[-1][1] != events:
            found.append((sample, events))
    return found


def _stretch(sample: RunSample) -> tuple[str, int | None]:
    return sample.cell.workload, None if sample.slot is None else sample.slot.stretch


def steadiness_parts(analysis: Analysis) -> list[SteadinessPart]:
    """Steady state, workload by workload and scheduler by scheduler."""
    return [SteadinessPart.of(entry) for entry in analysis.steadiness]
