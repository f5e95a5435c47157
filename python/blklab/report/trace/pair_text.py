"""Renders two runs side by side for a terminal."""

from __future__ import annotations

from blklab.report.terminal import Terminal
from blklab.report.text.printer import Printer
from blklab.report.trace.pair import ExplainPairDocument, pair_rows


def render_pair(document: ExplainPairDocument, console: Terminal) -> None:
    """Prints the finding, and the counters of both."""
    printer = Printer(console)
    printer.line((document.headline, "bold"))
    printer.blank()
    table = printer.table()
    table.add_column(document.workload, overflow="fold")
    for name in document.schedulers:
        table.add_column(printer.heading(name), justify="right")
    for title, cells in pair_rows(document):
        table.add_row(printer.text(title), *map(printer.text, cells))
    console.print(table)
    printer.blank()
    printer.line((f"One run of each on {document.target}; `blklab compare` has intervals.", "dim"))
