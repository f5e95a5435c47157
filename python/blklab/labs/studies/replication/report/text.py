"""Renders a replicated study for a terminal."""

from __future__ import annotations

from blklab.labs.studies.replication.report.finding import STATEMENT_SIGNS, StudyFinding, ValueRow
from blklab.report.terminal import Terminal
from blklab.report.text.printer import Printer

STATEMENT_STYLES = {"holds": "bold green", "fails": "bold red", "undecided": "bold yellow"}


def render_study(finding: StudyFinding, console: Terminal) -> None:
    """Prints statements, our values beside the published ones, remarks, and how many statements hold."""
    printer = Printer(console)
    printer.blank()
    printer.line((finding.title, "bold"), f" ({finding.name}), on {finding.place}")
    printer.line(f"{finding.counts()}: {finding.tally()}")
    printer.blank()
    for statement in finding.result.statements:
        origin = "published: " if statement.origin == "published" else ""
        printer.line(
            (
                f"{STATEMENT_SIGNS[statement.outcome]} {statement.outcome}: ",
                STATEMENT_STYLES[statement.outcome],
            ),
            f"{origin}{statement.says}",
        )
        printer.line(statement.found, indent=4)
        if statement.why:
            printer.line((statement.why, "dim"), indent=4)
    for table in finding.tables:
        printer.blank()
        printer.line((table, "bold"))
        _print_rows(finding.headings(table), finding.rows(table), printer)
    if finding.result.remarks:
        printer.blank()
    for remark in finding.result.remarks:
        printer.line(("note: ", "bold"), remark)
    printer.blank()
    printer.line((f"{finding.name}: {finding.tally()}.", "bold"))


def _print_rows(headings: tuple[str, str, str], rows: list[ValueRow], printer: Printer) -> None:
    table = printer.table()
    table.add_column("", overflow="fold", max_width=44)
    for heading in headings:
        table.add_column(heading, justify="right", overflow="fold")
    for row in rows:
        table.add_row(*(printer.text(cell) for cell in row))
    printer.console.print(table)
