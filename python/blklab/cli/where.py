"""`blklab where`: where the I/Os of a recording wait."""

from __future__ import annotations

import shlex

import click

from blklab.cli.browser import open_page
from blklab.cli.commands import described_command
from blklab.cli.options import json_option, open_option
from blklab.cli.output import require_writable, write_text
from blklab.errors import ExitCode, FormatError
from blklab.recordings.trace import trace_formats
from blklab.recordings.waits import analyse_waits
from blklab.report.terminal import console_out
from blklab.report.text.printer import Printer
from blklab.report.waits.document import where_document
from blklab.report.waits.short import FEW_TASKS, render_short_where
from blklab.report.waits.text import MOST_TASKS, render_where


@described_command(
    name="where",
    examples=(
        ("where the recorded I/O waited", "blklab where build.blkrecord"),
        ("the same as a page", "blklab where build.blkrecord --html where.html"),
        ("the trace of another program", "blklab where trace.csv --format msr"),
    ),
)
@click.argument("record", metavar="RECORD")
@click.option(
    "--format",
    "format_name",
    metavar="NAME",
    help=f"Format of RECORD. Default: recognised. Known: {', '.join(trace_formats())}.",
)
@click.option(
    "--tasks",
    "most_tasks",
    type=click.IntRange(min=1),
    help=f"Show this many tasks. Default: {FEW_TASKS}, or {MOST_TASKS} with -v.",
)
@click.option("-v", "--verbose", is_flag=True, help="Print all figures, not only the answer.")
@json_option
@click.option(
    "--html", "html_file", metavar="FILE", help="Write a page with the latencies over time to FILE."
)
@open_option
def command(
    *,
    record: str,
    format_name: str | None,
    most_tasks: int | None,
    verbose: bool,
    json_file: str | None,
    html_file: str | None,
    opens: bool,
) -> int:
    """Show where the I/Os of RECORD waited: in the queue or in the device, and who held the device meanwhile.

    RECORD is a file of `blklab record`, or another program's trace: blktrace, blkparse, fio's I/O log, MSR
    Cambridge, SYSTOR '17, Alibaba, Tencent, CloudPhysics, Thesios, SPC, blkreplay, biosnoop, iosnoop,
    perf script.
    """
    require_writable(json_file, html_file)
    try:
        waits = analyse_waits(record, format_name)
    except FormatError as error:
        from blklab.labs.reanalysis.readers import benchmark_of  # noqa: PLC0415 - a trace needs no readers

        if format_name is not None or (tool := benchmark_of(record)) is None:
            raise
        message = f"{record}: results of a benchmark ({tool}), not a trace"
        raise FormatError(message, hint=f"blklab analyse {shlex.quote(record)} reads them") from error
    document = where_document(record, waits)
    if json_file is not None:
        write_text(json_file, document.model_dump_json(by_alias=True, indent=2))
    if html_file is not None:
        from blklab.report.waits.html import where_html  # noqa: PLC0415 - templates take their time

        write_text(html_file, where_html(document))
    if json_file != "-" and html_file != "-":
        console = console_out()
        if verbose:
            render_where(document, console, most_tasks=most_tasks or MOST_TASKS)
            if html_file is not None:
                console.print(f"page: {html_file}", soft_wrap=True)
        else:
            render_short_where(document, Printer(console), most_tasks=most_tasks or FEW_TASKS, page=html_file)
    if opens and html_file not in (None, "-"):
        open_page(str(html_file))
    unread = waits.tally.unmatched and not waits.tally.ios
    return ExitCode.PARTIAL if waits.warnings or waits.tally.lost or unread else ExitCode.OK
