"""Goal and sweeps for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from blklab.quantities.formatting import confidence_text, count_of, metric_title, ratio_text
from blklab.report.charts.pareto import ParetoAxis
from blklab.report.charts.pareto_text import TextPoint, letter_of, pareto_lines
from blklab.report.documents.comparison import CompareDocument
from blklab.report.documents.findings import GoalPart, SweepPart
from blklab.report.documents.parts import OUTCOME_SIGNS
from blklab.report.summary.goal_view import (
    Ratio,
    better_high,
    front_sentence,
    plotted_dimensions,
    ratios_to_reference,
    weights_text,
)
from blklab.spec.goals import OWN

if TYPE_CHECKING:
    from blklab.report.text.printer import Printer

_WIDEST_NAME = 24
_WIDTH_OF_INTERVALS = 26
"""Of a column whose ratios have intervals."""


def print_findings(document: CompareDocument, printer: Printer) -> None:
    """The goal and the sweeps, if the experiment has any."""
    if document.goal is not None:
        printer.blank()
        _print_goal(document, document.goal, printer)
    for sweep in document.sweeps:
        printer.blank()
        _print_sweep(document, sweep, printer)


def _print_goal(document: CompareDocument, goal: GoalPart, printer: Printer) -> None:
    title = "Goal: your own weights" if goal.name == OWN else f"Goal: {goal.name}"
    printer.line((title, "bold"), f" ({weights_text(goal)})")
    for sentence in goal.absent:
        printer.line(sentence, indent=2)
    if goal.lead is not None and goal.lead.text:
        printer.line(f"{goal.lead.text}.")
    labels = [str(choice["label"]) for choice in document.schedulers]
    score = ratios_to_reference(goal, goal.comparisons, "goal")
    plotted = plotted_dimensions(goal)
    standings = {point.scheduler: point.standing for point in goal.front}
    table = printer.table()
    table.add_column("scheduler", min_width=9, max_width=_WIDEST_NAME, overflow="fold")
    table.add_column(printer.heading(f"score against\n{goal.reference}"), justify="right", no_wrap=True)
    shown = _columns(goal, labels, printer)
    for column in shown:
        table.add_column(printer.heading(f"{metric_title(column.metric)}\n"), justify="right")
    if goal.front:
        table.add_column("front", no_wrap=True)
    for index, name in enumerate(labels):
        cells = [_ratio_cell(score.get(name)), *(column.cells[name] for column in shown)]
        prefix = f"{letter_of(index)} " if plotted else ""
        if goal.front:
            cells.append(standings.get(name, "open"))
        table.add_row(printer.text(prefix + name), *(printer.text(cell) for cell in cells))
    printer.console.print(table)
    if not plotted or not goal.front:
        return
    x, y = plotted
    ratios_x = ratios_to_reference(goal, goal.dimension_comparisons, x)
    ratios_y = ratios_to_reference(goal, goal.dimension_comparisons, y)
    points = [
        TextPoint(_triple(ratios_x[name]), _triple(ratios_y[name]))
        for name in labels
        if name in ratios_x and name in ratios_y
    ]
    if len(points) == len(labels):
        axes = [ParetoAxis(metric_title(name), better_high(name)) for name in (x, y)]
        for drawn in pareto_lines(points, axes[0], axes[1], printer.console.width):
            printer.console.print(printer.text(drawn), soft_wrap=True)
    names = ", ".join(metric_title(name) for name in goal.dimensions)
    printer.line(f"Pareto front of {names}: {front_sentence(goal)}.")


@dataclass(frozen=True)
class _MetricColumn:
    """A metric of the goal, by scheduler."""

    metric: str
    cells: dict[str, str]


def _columns(goal: GoalPart, labels: Sequence[str], printer: Printer) -> list[_MetricColumn]:
    """Every metric of the goal, with intervals where the terminal has room for them."""
    ordered = sorted(goal.dimensions, key=lambda name: -goal.weights.get(name, 0))
    with_intervals = printer.console.width >= _WIDTH_OF_INTERVALS * (len(ordered) + 1) + _WIDEST_NAME
    found = []
    for metric in ordered if len(ordered) > 1 else []:
        ratios = ratios_to_reference(goal, goal.dimension_comparisons, metric)
        if not with_intervals:
            ratios = {name: Ratio(one.value, None, None) for name, one in ratios.items()}
        found.append(_MetricColumn(metric, {name: _ratio_cell(ratios.get(name)) for name in labels}))
    return found


def _ratio_cell(ratio: Ratio | None) -> str:
    if ratio is None:
        return "-"
    return "1" if ratio.low is None and ratio.value == 1 else ratio_text(ratio.value, ratio.low, ratio.high)


def _triple(ratio: Ratio) -> tuple[float, float | None, float | None]:
    return ratio.value, ratio.low, ratio.high


def _print_sweep(document: CompareDocument, sweep: SweepPart, printer: Printer) -> None:
    printer.line(
        (f"Sweep: {sweep.sweep}", "bold"),
        f" ({count_of(sweep.cells, 'combination')}; each effect against the default, within blocks, with its "
        f"{confidence_text(document.confidence)} interval; outcomes corrected by Holm's method)",
    )
    for workload in dict.fromkeys(effect.workload for effect in sweep.effects):
        effects = [effect for effect in sweep.effects if effect.workload == workload]
        table = printer.table()
        title = f"{workload}, {metric_title(effects[0].metric)}"
        table.add_column(printer.text(title), max_width=40, overflow="fold")
        table.add_column("ratio", justify="right", no_wrap=True)
        table.add_column("", no_wrap=True)
        for effect in effects:
            levels = [f"{tunable}={level}" for tunable, level in effect.levels.items()]
            name = levels[0] if effect.kind == "main" else f"  {levels[0]} with {levels[1]}"
            table.add_row(
                printer.text(name),
                printer.text(ratio_text(effect.ratio, effect.ci_low, effect.ci_high)),
                printer.text(OUTCOME_SIGNS[effect.outcome]),
            )
        printer.console.print(table)
    if any(effect.kind == "interaction" for effect in sweep.effects):
        printer.line(
            "An indented line is an interaction: the effect of both together beyond that of each alone."
        )
    for note in sweep.notes:
        printer.line(f"{note}.")
