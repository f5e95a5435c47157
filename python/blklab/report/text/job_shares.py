"""The shares of jobs in a terminal."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from blklab.report.documents.comparison import CompareDocument
from blklab.report.summary.job_shares import JobTable, job_tables
from blklab.report.terminal import Terminal
from blklab.report.text.printer import Printer

_GAP = 2


def render_job_shares(document: CompareDocument, console: Terminal) -> None:
    """Prints a table for each workload with two jobs or more."""
    for found in job_tables(document):
        console.print()
        console.print(f"{found.workload}: bytes of each job, and the ratio of each two within a run")
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("job", overflow="fold")
        for heading in found.headings:
            table.add_column(heading, justify="right", overflow="fold")
        for name, cells in found.rows:
            table.add_row(name, *cells)
        console.print(table)


def short_job_lines(document: CompareDocument, printer: Printer, room: int) -> list[Text]:
    """A row for each scheduler, a column for each job and ratio, of the workloads that fit into the room."""
    lines: list[Text] = []
    for found in job_tables(document):
        title = "by job" if len(document.workloads) == 1 else f"{found.workload} by job"
        table = _turned(found, title, printer)
        if len(lines) + len(table) <= room:
            lines += table
    return lines


def _turned(found: JobTable, title: str, printer: Printer) -> list[Text]:
    """The table with schedulers as rows; rates are left out where only ratios have room."""
    every = list(range(len(found.rows)))
    ratios = [place for place in every if found.rows[place][0] in found.ratios]
    for kept in (every, ratios):
        rows = [
            [title, *(found.rows[place][0] for place in kept)],
            *(
                [f" {heading}", *(found.rows[place][1][column] for place in kept)]
                for column, heading in enumerate(found.headings)
            ),
        ]
        cells = [[printer.clean(cell) for cell in row] for row in rows]
        widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
        if sum(widths) + _GAP * (len(widths) - 1) <= printer.console.width:
            return [
                printer.text(_aligned(row, widths), "" if number else "bold")
                for number, row in enumerate(cells)
            ]
    return [printer.text(f"{title}: -v has the table", "dim")]


def _aligned(row: list[str], widths: list[int]) -> str:
    """The first cell flush left, the others flush right."""
    padded = [
        cell.rjust(width) if column else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return (" " * _GAP).join(padded).rstrip()
