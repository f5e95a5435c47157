"""The table of jobs and schedulers in a terminal."""

from __future__ import annotations

from rich.table import Table

from blklab.report.documents.comparison import CompareDocument
from blklab.report.summary.job_shares import job_tables
from blklab.report.terminal import Terminal


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
