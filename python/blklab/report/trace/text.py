"""Renders the explanation of one run for a terminal."""

from __future__ import annotations

from blklab.report.documents.comparison import RunDocument
from blklab.report.terminal import Terminal
from blklab.report.text.comparison import render_run
from blklab.report.text.printer import Printer
from blklab.report.trace.document import ExplainDocument
from blklab.report.trace.wording import (
    MEMBER_HEADINGS,
    NARROW_COLUMNS,
    SUBMITTER_HEADINGS,
    findings,
    member_rows,
    submitter_rows,
)


def render_explanation(document: ExplainDocument, console: Terminal) -> None:
    """Prints the run's values, the table of submitters, and the findings."""
    run = RunDocument(
        target=document.target,
        scheduler=document.scheduler,
        tunables={},
        queue={},
        seed=document.seed,
        workload=document.workload,
        jobs=document.jobs,
        settings={},
        engine={},
        warnings=[],
    )
    render_run(run, console)
    printer = Printer(console)
    printer.blank()
    table = printer.table()
    table.add_column("who", overflow="fold", max_width=24)
    for column in NARROW_COLUMNS:
        table.add_column(SUBMITTER_HEADINGS[column], justify="right", no_wrap=True)
    for name, cells in submitter_rows(document):
        table.add_row(printer.text(name), *(printer.text(cells[column]) for column in NARROW_COLUMNS))
    if document.parties:
        console.print(table)
        printer.blank()
    members = member_rows(document)
    if members:
        table = printer.table()
        table.add_column("of the array")
        for heading in MEMBER_HEADINGS:
            table.add_column(heading, justify="right", no_wrap=True)
        for name, cells in members:
            table.add_row(name, *(printer.text(cell) for cell in cells))
        console.print(table)
        printer.blank()
    for finding in findings(document):
        printer.line(finding)
