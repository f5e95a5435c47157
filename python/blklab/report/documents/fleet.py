"""The verdict for a class of drives as a document for machines: what `blklab fleet --json` prints."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

import blklab
from blklab.analysis.class_comparison import ClassComparison
from blklab.analysis.fleet import FleetAnalysis
from blklab.analysis.fleet_goal import FleetGoal
from blklab.report.documents.comparison import MetricVerdictPart, VerdictPart
from blklab.report.documents.findings import FrontPart
from blklab.report.documents.parts import PairPart, Part
from blklab.report.sentences.fleet import fleet_remark_text
from blklab.report.sentences.goals import absent_text
from blklab.spec.drive_classes import DriveClass

FLEET_SCHEMA: Literal["blklab.fleet/1"] = "blklab.fleet/1"


class DriveClassPart(Part):
    """The class as it was asked for; null does not matter."""

    model: str | None
    kind: str | None
    rotational: bool | None


class DrivePart(Part):
    """A drive of the class that was tested."""

    identity: str
    """Tells it apart from all others."""
    name: str
    """Host and name of the disk."""
    host: str
    model: str
    kind: str
    rotational: bool | None
    size_bytes: int


class DriveRatioPart(Part):
    """The ratio on one drive, as its own experiment found it."""

    drive: str
    """Its identity."""
    run: str
    n: int
    ratio: float
    ci_low: float | None
    ci_high: float | None


class ClassPairPart(PairPart):
    """Two schedulers under a workload: `ratio` is the mean over `n` drives of first over second."""

    workload: str
    spread: float | None
    """Standard deviation of the true log ratio between drives."""
    new_low: float | None
    new_high: float | None
    """Interval for the true ratio on a new drive of the class."""
    new_drive: Literal["better", "no worse", "worse", "equal", "open"]
    chance_better: float | None
    """Probability that the first is better on a new drive."""
    drives: list[DriveRatioPart]


class FleetGoalPart(Part):
    """The goal's score over all workloads and its metrics one by one; the verdict rests on the score."""

    name: str
    goal: str
    """As ``--goal`` takes it."""
    weights: dict[str, float]
    workloads: list[str]
    """Those that the score is about."""
    comparisons: list[ClassPairPart]
    """Of the score; the workload is "all workloads", the metric "goal"."""
    verdict: MetricVerdictPart
    dimensions: list[str]
    dimension_comparisons: list[ClassPairPart]
    front: list[FrontPart]
    """Empty if there is one dimension only."""
    conflict: bool
    absent: list[str]
    """Sentences on metrics that workloads do not have."""


class FleetDocument(Part):
    """The document that `blklab fleet --json -` prints."""

    schema_: Literal["blklab.fleet/1"] = Field(default=FLEET_SCHEMA, alias="schema")
    blklab_version: str
    drive_class: DriveClassPart
    confidence: float
    margin: float
    drives: list[DrivePart]
    schedulers: list[str]
    workloads: list[str]
    runs: list[str]
    """The experiments that count."""
    comparisons: list[ClassPairPart]
    verdicts: list[MetricVerdictPart]
    verdict: VerdictPart
    goal: FleetGoalPart | None
    remarks: list[str]


def fleet_document(drive_class: DriveClass, found: FleetAnalysis) -> FleetDocument:
    """Makes the document of a class's verdict."""
    return FleetDocument(
        blklab_version=blklab.__version__,
        drive_class=DriveClassPart.of(drive_class),
        confidence=found.confidence,
        margin=found.margin,
        drives=[DrivePart.of(drive) for drive in found.drives],
        schedulers=list(found.labels),
        workloads=list(found.workloads),
        runs=list(found.runs),
        comparisons=[_pair(one) for one in found.comparisons],
        verdicts=[MetricVerdictPart.of_verdict(one) for one in found.metric_verdicts],
        verdict=VerdictPart.of_verdict(found.verdict),
        goal=None if found.goal is None else _goal(found.goal),
        remarks=[fleet_remark_text(remark) for remark in found.remarks],
    )


def _goal(found: FleetGoal) -> FleetGoalPart:
    return FleetGoalPart(
        name=found.goal.name,
        goal=found.goal.canonical,
        weights=found.goal.weights,
        workloads=list(found.workloads),
        comparisons=[_pair(one) for one in found.comparisons],
        verdict=MetricVerdictPart.of_verdict(found.verdict),
        dimensions=list(found.dimensions),
        dimension_comparisons=[_pair(one) for one in found.dimension_comparisons],
        front=[FrontPart.of(point) for point in found.front],
        conflict=found.conflict,
        absent=[absent_text(one) for one in found.absent],
    )


def _pair(one: ClassComparison) -> ClassPairPart:
    return ClassPairPart.of(
        one.mean,
        spread=one.spread,
        new_low=one.new_low,
        new_high=one.new_high,
        new_drive=one.new_drive,
        chance_better=one.chance_better,
        drives=[DriveRatioPart.of(each, drive=each.drive.identity, run=each.run_id) for each in one.drives],
    )
