"""The analysis of files as a document for machines: what `blklab analyse --json` prints.

docs/schema/analyse-1.json is generated from the models (`make golden`).
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

import blklab
from blklab.reanalysis.analysis import FileAnalysis, Section
from blklab.reanalysis.findings import POWER, ConditionFindings, LevelSummary, PairFinding
from blklab.reanalysis.report.wording import not_supported, supported
from blklab.report.documents.parts import Part

ANALYSE_SCHEMA: Literal["blklab.analyse/1"] = "blklab.analyse/1"


class FilePart(Part):
    """A file, and how much of it was understood."""

    name: str
    reader: str
    figures: int
    lines: int
    skipped_lines: list[int]
    """Lines that are not of the tool's format."""


class ProblemPart(Part):
    """A place where a figure should be and could not be used."""

    file: str
    line: int | None
    message: str


class DesignPart(Part):
    """What the figures were taken to be."""

    factor: str | None
    conditions: list[str]
    block: list[str]
    average: list[str]
    run: str | None
    order: str | None
    scale: Literal["difference", "ratio"]
    share: bool
    reasons: list[str]


class TrendPart(Part):
    """How a level's runs move with their order."""

    tau: float
    p: float
    p_adjusted: float
    slope: float
    serial_correlation: float | None


class LevelPart(Part):
    """One level's figures."""

    level: str
    n: int
    blocks: int | None
    mean: float
    ci_low: float | None
    ci_high: float | None
    deviation: float | None
    minimum: float
    maximum: float
    trend: TrendPart | None


class SpreadPart(Part):
    """Ratio of two standard deviations."""

    ratio: float
    ci_low: float
    ci_high: float
    p_adjusted: float


class PairPart(Part):
    """Two levels against one another."""

    first: str
    second: str
    n: int
    paired: bool
    scale: Literal["difference", "ratio"]
    estimate: float
    ci_low: float | None
    ci_high: float | None
    p: float
    p_adjusted: float
    outcome: Literal["higher", "lower", "equal", "open"]
    effect_size: float | None
    detectable: float | None
    spread: SpreadPart | None


class FigurePart(Part):
    """One figure that took part, and where it stands."""

    level: str
    value: float
    file: str
    line: int | None


class CellPart(Part):
    """Figures of one metric under one condition."""

    reader: str
    metric: str
    unit: str
    better: Literal["higher", "lower"] | None
    condition: dict[str, str]
    design: int
    """Index into ``designs``."""
    scale: Literal["difference", "ratio"]
    levels: list[LevelPart]
    pairs: list[PairPart]
    supported: list[str]
    not_supported: list[str]
    warnings: list[str]
    figures: list[FigurePart]


class AnalyseDocument(Part):
    """What some files say."""

    schema_name: Literal["blklab.analyse/1"] = Field(ANALYSE_SCHEMA, alias="schema")
    blklab_version: str
    complete: bool
    """False if a figure is missing: the exit code is 7 then."""
    confidence: float
    margin: float
    power: float
    files: list[FilePart]
    problems: list[ProblemPart]
    notes: list[str]
    designs: list[DesignPart]
    cells: list[CellPart]


def analyse_document(analysis: FileAnalysis) -> AnalyseDocument:
    """The document of an analysis."""
    return AnalyseDocument(
        schema=ANALYSE_SCHEMA,
        blklab_version=blklab.__version__,
        complete=analysis.complete,
        confidence=analysis.confidence,
        margin=analysis.margin,
        power=POWER,
        files=[FilePart.of(one) for one in analysis.files],
        problems=[
            ProblemPart(file=one.place.file, line=one.place.line, message=one.message)
            for one in analysis.problems
        ],
        notes=analysis.notes,
        designs=[DesignPart.of(section.design) for section in analysis.sections],
        cells=[
            _cell(found, section, index, analysis)
            for index, section in enumerate(analysis.sections)
            for found in section.findings
        ],
    )


def _cell(found: ConditionFindings, section: Section, index: int, analysis: FileAnalysis) -> CellPart:
    cell = found.cell
    return CellPart(
        reader=section.reader,
        metric=cell.metric,
        unit=cell.unit,
        better=cell.better,
        condition=cell.condition,
        design=index,
        scale=found.scale,
        levels=[_level(one) for one in found.levels],
        pairs=[_pair(one, analysis.confidence) for one in found.pairs],
        supported=supported(found),
        not_supported=not_supported(found),
        warnings=found.warnings,
        figures=[
            FigurePart(level=level, value=one.value, file=one.place.file, line=one.place.line)
            for level, series in cell.series.items()
            for one in series
        ],
    )


def _level(one: LevelSummary) -> LevelPart:
    trend = None if one.trend is None else TrendPart.of(one.trend, p_adjusted=one.p_trend)
    return LevelPart.of(one, trend=trend)


def _pair(one: PairFinding, confidence: float) -> PairPart:
    spread = None
    if one.spread is not None and one.p_spread is not None:
        low, high = one.spread.interval(confidence)
        spread = SpreadPart(ratio=one.spread.ratio, ci_low=low, ci_high=high, p_adjusted=one.p_spread)
    return PairPart.of(one, spread=spread)
