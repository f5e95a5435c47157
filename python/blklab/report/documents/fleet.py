"""The verdict for a class of drives as a document for machines: what `blklab fleet --json` prints."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

import blklab
from blklab.analysis.fleet import ClassComparison, FleetAnalysis
from blklab.report.documents.comparison import MetricVerdictPart, VerdictPart
from blklab.report.documents.parts import PairPart, Part
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
        verdicts=[MetricVerdictPart.of(one) for one in found.metric_verdicts],
        verdict=VerdictPart.of(found.verdict),
        remarks=list(found.remarks),
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
