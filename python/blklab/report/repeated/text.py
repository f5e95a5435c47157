"""A study that was run again, for a terminal."""

from __future__ import annotations

from rich.console import Console

from blklab.figures import count_of, rounded
from blklab.report.repeated.finding import OUTCOME_SIGNS, PLACE_TITLES, StudyFinding
from blklab.report.text import Printer
from blklab.studies.result import Figure, Quantity
from blklab.studies.statements import quantity_text

_STYLES = {"holds": "bold green", "fails": "bold red", "undecided": "bold yellow"}


def render_study(finding: StudyFinding, console: Console) -> None:
    """Prints statements, figures beside the published ones, and remarks."""
    printer = Printer(console)
    printer.blank()
    printer.line((finding.title, "bold"), f" ({finding.name}), on {PLACE_TITLES[finding.asked.place]}")
    runs = sum(len(record.samples) for record in finding.records.values())
    printer.line(
        f"{count_of(len(finding.experiments), 'experiment')}, {count_of(runs, 'run')}: {finding.tally()}"
    )
    printer.blank()
    for statement in finding.result.statements:
        origin = "published: " if statement.origin == "published" else ""
        printer.line(
            (f"{OUTCOME_SIGNS[statement.outcome]} {statement.outcome}: ", _STYLES[statement.outcome]),
            f"{origin}{statement.says}",
        )
        printer.line(statement.found, indent=4)
        if statement.why:
            printer.line((statement.why, "dim"), indent=4)
    for table in finding.tables:
        printer.blank()
        printer.line((table, "bold"))
        _print_figures([one for one in finding.result.figures if one.table == table], printer)
    if finding.result.remarks:
        printer.blank()
    for remark in finding.result.remarks:
        printer.line(("note: ", "bold"), remark)


def _print_figures(figures: list[Figure], printer: Printer) -> None:
    table = printer.table()
    table.add_column("", overflow="fold", max_width=44)
    for heading in ("published", "ours", "ours / published"):
        table.add_column(heading, justify="right", overflow="fold")
    for figure in figures:
        table.add_row(
            printer.text(figure.name if not figure.unit else f"{figure.name}, {figure.unit}"),
            printer.text(figure_cell(figure.published)),
            printer.text(figure_cell(figure.ours) if figure.ours else f"not asked: {figure.not_asked}"),
            printer.text("-" if figure.ratio is None else rounded(figure.ratio)),
        )
    printer.console.print(table)


def figure_cell(quantity: Quantity | None) -> str:
    """A figure in a table."""
    return "-" if quantity is None else quantity_text(quantity)
