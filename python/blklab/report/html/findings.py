"""Goal and sweeps for the HTML report: charts and rows for its template."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from blklab.quantities.formatting import metric_title, ratio_text
from blklab.report.charts.pareto import ParetoAxis, ParetoPoint, pareto_chart
from blklab.report.charts.relative import RelativeRow, relative_chart
from blklab.report.documents.comparison import CompareDocument
from blklab.report.documents.findings import EffectPart, GoalPart, SweepPart
from blklab.report.documents.parts import OUTCOME_SIGNS
from blklab.report.drawing.palette import Appearance
from blklab.report.summary.goal_view import (
    Ratio,
    better_high,
    front_sentence,
    plotted_dimensions,
    ratios_to_reference,
    weights_text,
)

Looks = dict[str, Appearance]


@dataclass(frozen=True)
class GoalSection:
    """The goal's part of the report."""

    part: GoalPart
    weights: str
    chart: Markup | None
    front: str
    headings: list[str]
    rows: list[tuple[str, list[str]]]


@dataclass(frozen=True)
class EffectRow:
    """An effect in a table."""

    name: str
    kind: str
    effect: str
    outcome: str
    outcome_text: str
    tip: str


@dataclass(frozen=True)
class SweepTable:
    """Effects of a sweep under one workload."""

    workload: str
    metric: str
    chart: Markup
    rows: list[EffectRow]


@dataclass(frozen=True)
class SweepSection:
    """A sweep's part of the report."""

    part: SweepPart
    tables: list[SweepTable]


def goal_section(document: CompareDocument, looks: Looks) -> GoalSection | None:
    """The goal's section; None if the experiment had no goal."""
    goal = document.goal
    if goal is None:
        return None
    labels = [str(choice["label"]) for choice in document.schedulers]
    columns = [ratios_to_reference(goal, goal.comparisons, "goal")]
    columns += [ratios_to_reference(goal, goal.dimension_comparisons, metric) for metric in goal.dimensions]
    standings: dict[str, str] = {point.scheduler: point.standing for point in goal.front}
    rows = [
        (
            name,
            [*(_cell(column.get(name)) for column in columns), *([standings[name]] if standings else [])],
        )
        for name in labels
    ]
    headings = ["score", *map(metric_title, goal.dimensions), *(["Pareto front"] if standings else [])]
    chart = _pareto(goal, labels, looks, standings)
    front = front_sentence(goal) if goal.front else ""
    return GoalSection(goal, weights_text(goal), chart, front, headings, rows)


def _cell(ratio: Ratio | None) -> str:
    if ratio is None:
        return "-"
    return "reference" if ratio.low is None and ratio.value == 1 else _text(ratio)


def _text(ratio: Ratio) -> str:
    return ratio_text(ratio.value, ratio.low, ratio.high)


def _pareto(goal: GoalPart, labels: list[str], looks: Looks, standings: dict[str, str]) -> Markup | None:
    plotted = plotted_dimensions(goal)
    if plotted is None or not goal.front:
        return None
    x, y = (ratios_to_reference(goal, goal.dimension_comparisons, metric) for metric in plotted)
    points = [
        ParetoPoint(
            name,
            looks[name],
            x[name].value,
            x[name].low,
            x[name].high,
            y[name].value,
            y[name].low,
            y[name].high,
            standings[name],
        )
        for name in labels
        if name in x and name in y
    ]
    axes = [ParetoAxis(metric_title(metric), better_high(metric)) for metric in plotted]
    title = f"{axes[0].title[:1].upper()}{axes[0].title[1:]} and {axes[1].title} at once"
    note = (
        f"Each scheduler against {goal.reference}, within blocks, with intervals; the dashed steps join the "
        "front by the estimates alone."
    )
    return pareto_chart(title, points, axes[0], axes[1], note)


def sweep_sections(document: CompareDocument) -> list[SweepSection]:
    """All sweeps of the experiment."""
    return [
        SweepSection(
            sweep,
            [
                _sweep_table(document, [one for one in sweep.effects if one.workload == workload])
                for workload in dict.fromkeys(effect.workload for effect in sweep.effects)
            ],
        )
        for sweep in document.sweeps
    ]


def _sweep_table(document: CompareDocument, effects: list[EffectPart]) -> SweepTable:
    rows = [
        EffectRow(
            name=_name(effect),
            kind=effect.kind,
            effect=ratio_text(effect.ratio, effect.ci_low, effect.ci_high),
            outcome=effect.outcome,
            outcome_text=OUTCOME_SIGNS[effect.outcome],
            tip=f"{effect.n} blocks, p = {effect.p_adjusted:.2g} after Holm's correction",
        )
        for effect in effects
    ]
    tunables = list(dict.fromkeys(next(iter(effect.levels)) for effect in effects))
    drawn = [
        RelativeRow(
            name=_name(effect),
            appearance=Appearance(tunables.index(next(iter(effect.levels)))),
            ratio=effect.ratio,
            low=effect.ci_low,
            high=effect.ci_high,
            outcome={"undecided": "open"}.get(effect.outcome, effect.outcome),
        )
        for effect in effects
        if effect.kind == "main"
    ]
    title = metric_title(effects[0].metric)
    note = "Main effects: each level against the default, averaged over the other tunables, within blocks."
    chart = relative_chart(f"{effects[0].workload}, {title}", drawn, "the default", document.margin, note)
    return SweepTable(effects[0].workload, title, chart, rows)


def _name(effect: EffectPart) -> str:
    return " with ".join(f"{tunable}={level}" for tunable, level in effect.levels.items())
