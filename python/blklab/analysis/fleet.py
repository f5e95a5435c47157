"""A verdict for a class of drives: best on average, and what a new drive of the class may be expected to do.

Each drive gives one ratio for each pair of schedulers: that of its own experiment, between runs of the same
block. `blklab.analysis.statistics.population` puts the drives together. Correction for many questions,
ranking and the overall answer are those of a single experiment, with drives in the place of blocks.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from blklab.analysis.class_comparison import ClassComparison, DriveRatio, class_comparison
from blklab.analysis.comparison import PairwiseComparison, compare_all
from blklab.analysis.designs import PopulationDesign
from blklab.analysis.doubts import differing_controls
from blklab.analysis.drives import Drive, DriveExperiment, Fleet, LeftOut, fleet_of
from blklab.analysis.fleet_goal import FleetGoal, GoalRemark, fleet_goal
from blklab.analysis.metrics import metric_named
from blklab.analysis.overall import Verdict, overall_verdict, verdict_for_goal, with_choice
from blklab.analysis.questions import JUDGED_WORKLOADS, Question
from blklab.analysis.ranking import MetricVerdict, metric_verdict
from blklab.analysis.statistics.difference import Difference
from blklab.analysis.statistics.population import (
    FEWEST_DRIVES,
    DriveEffect,
    PopulationDifference,
    population_difference,
)
from blklab.analysis.tie_breaking import TieBreak, UsuallyInForce
from blklab.quantities.sample_units import DRIVES
from blklab.records.experiment import ExperimentRecord
from blklab.spec.goals import Goal

Condition = Literal["kernels", "runtimes", "queue attributes", "control groups"]


@dataclass(frozen=True)
class FewDrives:
    """A scheduler that was tested on too few drives or, if it counts, not on all of them."""

    scheduler: str
    drives: int
    of: int
    counts: bool


@dataclass(frozen=True)
class MixedConditions:
    """Differences between the experiments that a spread between drives may be due to."""

    kinds: Mapping[Condition, int]
    """How many of each there are."""


FleetRemark = LeftOut | FewDrives | GoalRemark | MixedConditions


@dataclass(frozen=True)
class FleetAnalysis:
    """The verdict for a class of drives and its evidence."""

    drives: Sequence[Drive]
    labels: Sequence[str]
    """The schedulers, each in its own grammar."""
    workloads: Sequence[str]
    comparisons: Sequence[ClassComparison]
    metric_verdicts: Sequence[MetricVerdict]
    verdict: Verdict
    remarks: Sequence[FleetRemark]
    runs: Sequence[str]
    """The experiments that count, by name."""
    confidence: float
    margin: float
    goal: FleetGoal | None = None
    """The findings on the goal, on which the verdict then rests."""

    @property
    def modelled(self) -> bool:
        """Whether all its drives are modelled disks."""
        return bool(self.drives) and all(drive.modelled for drive in self.drives)

    def against(self, label: str, workload: str) -> list[ClassComparison]:
        """A scheduler against each other one under a workload, seen from it."""
        return [
            one.seen_from(label)
            for one in self.comparisons
            if one.mean.workload == workload and label in (one.mean.first, one.mean.second)
        ]


def analyse_fleet(
    records: Iterable[ExperimentRecord],
    *,
    confidence: float,
    margin: float,
    goal: Goal | None = None,
    left_out: Sequence[LeftOut] = (),
) -> FleetAnalysis:
    """Puts the experiments of a class of drives together.

    Args:
        records: Experiments on drives of the class, in any order.
        confidence: Of intervals and of all claims together, such as 0.95.
        margin: Ratios between 1/(1+margin) and 1+margin count as equal.
        goal: The verdict is about its score over all workloads; None for each workload by its own metric.
        left_out: Experiments that the caller leaves out, for the remarks.

    Raises:
        UnknownNameError: if a workload or the goal is decided by a metric that does not exist.
    """
    fleet = fleet_of(records)
    labels, few_drives = _schedulers(fleet)
    design = PopulationDesign(confidence=confidence, margin=margin)
    questions = _questions(fleet, labels)
    differences = _Differences(fleet, margin)
    compared = compare_all(questions, design, labels, differences.of)
    verdicts = [
        metric_verdict(question, pairs, design, labels)
        for question, pairs in zip(questions, compared, strict=True)
    ]
    judged = [question.workload for question in questions if not question.control]
    verdict = overall_verdict(judged or [question.workload for question in questions], verdicts, labels)
    found = None
    if goal is not None:
        found = fleet_goal(fleet, goal, design, labels)
        verdict = verdict_for_goal(goal, found.verdict, labels)
    pairs = [pair for several in compared for pair in several]
    tie = _tie(fleet, verdict.best) if verdict.status == "equal" else None
    return FleetAnalysis(
        drives=fleet.drives,
        labels=labels,
        workloads=[question.workload for question in questions],
        comparisons=[differences.comparison(pair, confidence) for pair in pairs],
        metric_verdicts=verdicts,
        verdict=with_choice(verdict, tie, differing_controls(verdicts, pairs), []),
        remarks=[
            *left_out,
            *fleet.left_out,
            *few_drives,
            *([] if found is None else found.remarks),
            *_conditions(fleet),
        ],
        runs=sorted({one.record.run_id for several in fleet.experiments.values() for one in several}),
        confidence=confidence,
        margin=margin,
        goal=found,
    )


def _schedulers(fleet: Fleet) -> tuple[list[str], list[FewDrives]]:
    """Those tested on enough drives, and remarks on the others."""
    counts: Counter[str] = Counter()
    for identity in {drive.identity for drive in fleet.drives}:
        tested = [
            name
            for several in fleet.experiments.values()
            for one in several
            if one.drive.identity == identity
            for name in one.labels
        ]
        counts.update(set(tested))
    needed = min(FEWEST_DRIVES, max(counts.values(), default=0))
    kept = [name for name, count in counts.items() if count >= needed]
    total = len(fleet.drives)
    few = [FewDrives(name, count, total, counts=False) for name, count in counts.items() if count < needed]
    few += [FewDrives(name, counts[name], total, counts=True) for name in kept if counts[name] < total]
    return sorted(kept), few


def _questions(fleet: Fleet, labels: Sequence[str]) -> list[Question]:
    """The metric that decides each workload; those of judged workloads are one family."""
    names = list(fleet.experiments)
    judged = [name for name in names if not fleet.workloads[name].control] or names
    return [
        Question(
            workload=name,
            metric=(metric := metric_named(fleet.workloads[name].decide_by)),
            values=_levels(fleet.experiments[name], name, metric.name, labels),
            control=fleet.workloads[name].control,
            family=JUDGED_WORKLOADS if name in judged else None,
            family_size=len(judged) if name in judged else 1,
            unit=DRIVES,
        )
        for name in names
    ]


def _levels(
    experiments: Sequence[DriveExperiment], workload: str, metric: str, labels: Sequence[str]
) -> dict[str, dict[int, float]]:
    """By scheduler and number of the drive: its level, relative to the drive's own."""
    found: dict[str, dict[int, float]] = {}
    for number, experiment in enumerate(experiments):
        series = experiment.series(workload, metric_named(metric))
        present = {name: series[name] for name in labels if name in series}
        # Blocks that all of them have: a scheduler that left early missed the later part of a drift.
        shared = set.intersection(*(set(values) for values in present.values())) if present else set()
        logs = {
            name: statistics.fmean(math.log(values[block]) for block in shared)
            for name, values in present.items()
            if shared and all(values[block] > 0 for block in shared)
        }
        if logs:
            center = statistics.fmean(logs.values())
            for name, level in logs.items():
                found.setdefault(name, {})[number] = math.exp(level - center)
    return found


class _Differences:
    """Differences over drives, and the drives' own behind them."""

    def __init__(self, fleet: Fleet, margin: float) -> None:
        self._fleet = fleet
        self._margin = margin
        self._found: dict[tuple[str, str, str], tuple[PopulationDifference, list[DriveRatio]]] = {}

    def of(self, question: Question, first: str, second: str) -> Difference | None:
        """Over the drives on which both have figures; None if there are none."""
        effects, ratios = [], []
        for experiment in self._fleet.experiments[question.workload]:
            own = experiment.difference(question.workload, question.metric, first, second)
            if own is None or not math.isfinite(own.standard_error):
                continue
            effects.append(DriveEffect(own.log_ratio, own.standard_error))
            low, high = own.ratio_interval(experiment.record.spec.confidence) or (None, None)
            ratios.append(DriveRatio(experiment.drive, experiment.record.run_id, own.n, own.ratio, low, high))
        if not effects:
            return None
        difference = population_difference(effects, margin=self._margin)
        self._found[question.workload, first, second] = difference, ratios
        return difference

    def comparison(self, mean: PairwiseComparison, confidence: float) -> ClassComparison:
        """A comparison with what it predicts."""
        difference, ratios = self._found[mean.workload, mean.first, mean.second]
        metric = metric_named(mean.metric)
        return class_comparison(mean, metric, difference, ratios, margin=self._margin, confidence=confidence)


def _tie(fleet: Fleet, equals: Sequence[str]) -> TieBreak | None:
    """Of several equals the one that was in force before on most drives."""
    found = {one.drive.identity: one for several in fleet.experiments.values() for one in several}
    counts = Counter(one.record.target.default_scheduler for one in found.values())
    usual = max(equals, key=lambda name: counts[name])
    if not counts[usual]:
        return None
    return TieBreak(usual, UsuallyInForce(counts[usual], len(found)))


def _conditions(fleet: Fleet) -> list[MixedConditions]:
    """Differences between the experiments that a spread between drives may be due to."""
    records = [one.record for several in fleet.experiments.values() for one in several]
    kinds: Mapping[Condition, set[str]] = {
        "kernels": {record.machine.kernel for record in records},
        "runtimes": {str(record.spec.runtime_ns) for record in records},
        "queue attributes": {str(sorted(record.spec.queue.items())) for record in records},
        "control groups": {str(record.spec.cgroups) for record in records},
    }
    differing = {kind: len(found) for kind, found in kinds.items() if len(found) > 1}
    return [MixedConditions(differing)] if differing else []
