"""The JSON document that `blklab analyse --json` prints.

`make golden` generates docs/reference/schema/analyse-1.json from these models.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

import blklab
from blklab.labs.reanalysis.analysis import DesignSection, FileAnalysis
from blklab.labs.reanalysis.findings import POWER, LevelSummary, PairFinding, StratumFindings
from blklab.labs.reanalysis.report.wording import not_supported_sentences, supported_sentences
from blklab.report.documents.parts import Part

ANALYSE_SCHEMA: Literal["blklab.analyse/1"] = "blklab.analyse/1"


class FilePart(Part):
    """A file, and how much of it was read."""

    name: str
    reader: str
    figures: int
    lines: int
    skipped_lines: list[int]
    """Lines that are not in the tool's format."""


class ProblemPart(Part):
    """A location whose value is missing or could not be used."""

    file: str
    line: int | None
    message: str


class DataDesignPart(Part):
    """The design of the values."""

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
    """The trend of a level's runs with their order."""

    tau: float
    p: float
    p_adjusted: float
    slope: float
    serial_correlation: float | None


class LevelPart(Part):
    """One level's values."""

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


class LevelPairPart(Part):
    """Comparison of two levels."""

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


class ValuePart(Part):
    """One value in the analysis, and its location."""

    level: str
    value: float
    file: str
    line: int | None


class StratumPart(Part):
    """Values of one metric under one condition."""

    reader: str
    metric: str
    unit: str
    better: Literal["higher", "lower"] | None
    condition: dict[str, str]
    design: int
    """Index into ``designs``."""
    scale: Literal["difference", "ratio"]
    levels: list[LevelPart]
    pairs: list[LevelPairPart]
    supported: list[str]
    not_supported: list[str]
    warnings: list[str]
    figures: list[ValuePart]


class AnalyseDocument(Part):
    """The analysis of some files."""

    schema_name: Literal["blklab.analyse/1"] = Field(ANALYSE_SCHEMA, alias="schema")
    blklab_version: str
    complete: bool
    """False if a value is missing; the exit code is then 7."""
    confidence: float
    margin: float
    power: float
    files: list[FilePart]
    problems: list[ProblemPart]
    notes: list[str]
    designs: list[DataDesignPart]
    cells: list[StratumPart]


def analyse_document(analysis: FileAnalysis) -> AnalyseDocument:
    """Builds the document of an analysis."""
    return AnalyseDocument(
        schema=ANALYSE_SCHEMA,
        blklab_version=blklab.__version__,
        complete=analysis.complete,
        confidence=analysis.confidence,
        margin=analysis.margin,
        power=POWER,
        files=[FilePart.of(one, figures=one.nr_values) for one in analysis.files],
        problems=[
            ProblemPart(file=one.location.file, line=one.location.line, message=one.message)
            for one in analysis.problems
        ],
        notes=analysis.notes,
        designs=[DataDesignPart.of(section.design) for section in analysis.sections],
        cells=[
            _cell(found, section, index, analysis)
            for index, section in enumerate(analysis.sections)
            for found in section.findings
        ],
    )


def _cell(found: StratumFindings, section: DesignSection, index: int, analysis: FileAnalysis) -> StratumPart:
    stratum = found.stratum
    return StratumPart(
        reader=section.reader,
        metric=stratum.metric,
        unit=stratum.unit,
        better=stratum.better,
        condition=stratum.condition,
        design=index,
        scale=found.scale,
        levels=[_level(one) for one in found.levels],
        pairs=[_pair(one, analysis.confidence) for one in found.pairs],
        supported=supported_sentences(found),
        not_supported=not_supported_sentences(found),
        warnings=found.warnings,
        figures=[
            ValuePart(level=level, value=one.value, file=one.location.file, line=one.location.line)
            for level, series in stratum.series.items()
            for one in series
        ],
    )


def _level(one: LevelSummary) -> LevelPart:
    trend = None if one.trend is None else TrendPart.of(one.trend, p_adjusted=one.p_trend)
    return LevelPart.of(one, trend=trend)


def _pair(one: PairFinding, confidence: float) -> LevelPairPart:
    spread = None
    if one.spread is not None and one.p_spread is not None:
        low, high = one.spread.interval(confidence)
        spread = SpreadPart(ratio=one.spread.ratio, ci_low=low, ci_high=high, p_adjusted=one.p_spread)
    return LevelPairPart.of(one, spread=spread)
