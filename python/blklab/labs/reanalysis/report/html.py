"""Renders the analysis of other tools' results as one HTML file, in the style of all reports."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from blklab.labs.reanalysis.analysis import FileAnalysis
from blklab.labs.reanalysis.findings import POWER, StratumFindings
from blklab.labs.reanalysis.report.chart import stratum_chart
from blklab.labs.reanalysis.report.document import analyse_document
from blklab.labs.reanalysis.report.wording import (
    downward,
    effect_text,
    level_cells,
    not_supported_sentences,
    supported_sentences,
)
from blklab.quantities.formatting import confidence_text, count_of, margin_text
from blklab.report.drawing.picture_frame import NARROW, WIDE
from blklab.report.html.page import inert_json, page_environment, page_script, page_style
from blklab.report.html.shell import with_shell


@dataclass(frozen=True)
class _StratumSection:
    """One stratum, prepared for the template."""

    anchor: str
    title: str
    unit: str
    found: StratumFindings
    charts: list[Markup]
    supported: list[str]
    not_supported: list[str]
    levels: list[list[str]]
    pairs: list[list[str]]


def render_analysis_html(analysis: FileAnalysis) -> str:
    """Returns the report as the text of one HTML file (UTF-8)."""
    parts = [
        _stratum_section(found, f"cell-{index}") for index, found in enumerate(analysis.findings, start=1)
    ]
    certain = sum(len(part.supported) for part in parts)
    pairs = sum(len(part.found.pairs) for part in parts)
    script, digest = page_script()
    page = (
        page_environment()
        .get_template("analyse.html.j2")
        .render(
            analysis=analysis,
            parts=parts,
            headline=_headline(certain, pairs),
            confidence=confidence_text(analysis.confidence),
            margin=margin_text(analysis.margin),
            power=confidence_text(POWER),
            count_of=count_of,
            style=page_style(),
            script=script,
            script_digest=digest,
            data=inert_json(analyse_document(analysis)),
        )
    )
    return with_shell(page, "measured elsewhere", "blklab analyse")


def _headline(certain: int, pairs: int) -> str:
    if not pairs:
        return "No comparison"
    return f"{certain} of {count_of(pairs, 'comparison')} settled" if certain else "No comparison is settled"


def _stratum_section(found: StratumFindings, anchor: str) -> _StratumSection:
    return _StratumSection(
        anchor=anchor,
        title=found.stratum.title,
        unit=found.stratum.unit,
        found=found,
        charts=[stratum_chart(found, width=width) for width in (WIDE, NARROW)],
        supported=supported_sentences(found),
        not_supported=not_supported_sentences(found),
        levels=[[one.level or "(none)", *level_cells(one)] for one in found.levels],
        pairs=[
            [
                f"{pair.first} over {pair.second}",
                str(pair.n),
                effect_text(pair, found.stratum.unit),
                f"{pair.p:.2g}",
                f"{pair.p_adjusted:.2g}",
                {"higher": "▲ higher", "lower": "▼ lower", "equal": "= equal", "open": "? open"}[
                    pair.outcome
                ],
            ]
            for pair in map(downward, found.pairs)
        ],
    )
