"""`blklab report`: analyse a stored run again."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from blklab.analysis.verdict import analyse
from blklab.cli.browser import open_page
from blklab.cli.commands import described_command
from blklab.cli.monitoring_files import write_monitoring
from blklab.cli.options import (
    experiment_options,
    json_option,
    junit_option,
    open_option,
    openmetrics_option,
    store_option,
)
from blklab.cli.output import require_writable, write_own_text, write_text
from blklab.records.run_files import default_report_file
from blklab.records.store import Store
from blklab.report.documents.comparison import compare_document
from blklab.report.html.comparison import render_html
from blklab.report.terminal import console_out
from blklab.report.text.comparison import render
from blklab.report.text.job_shares import render_job_shares
from blklab.spec.request import SpecValues


@described_command(
    name="report",
    examples=(
        ("the newest run", "blklab report"),
        ("as a page, opened in the browser", "blklab report --open"),
        ("the same figures, decided by another goal", "blklab report latest --goal latency"),
    ),
)
@click.argument("run", default="latest")
@click.option("--html", "html_file", metavar="FILE", help="Write the HTML report to FILE.")
@open_option
@experiment_options("report")
@json_option
@openmetrics_option
@junit_option
@click.option("-v", "--verbose", is_flag=True, help="Print all figures, not only the answer.")
@store_option
def command(
    *,
    run: str,
    html_file: str | None,
    opens: bool,
    given: SpecValues,
    json_file: str | None,
    openmetrics_file: str | None,
    junit_file: str | None,
    verbose: bool,
    store_url: str | None,
) -> None:
    """Show RUN (default: the latest): verdict, figures, warnings.

    The analysis is made anew from the stored samples, so it can be repeated with another confidence,
    margin or goal at any time.
    """
    files = (html_file, json_file, openmetrics_file, junit_file)
    require_writable(*files)
    with Store.opened(store_url) as store:
        record = store.load(run)
    record = record.model_copy(update={"spec": record.spec.model_copy(update=given.fields())})
    document = compare_document(record, analyse(record))
    if html_file is not None:
        write_text(html_file, render_html(record, document))
    elif opens:
        html_file = str(default_report_file(record.run_id))
        write_own_text(Path(html_file), render_html(record, document))
    if json_file is not None:
        write_text(json_file, document.model_dump_json(by_alias=True, indent=2))
    write_monitoring([document], openmetrics_file, junit_file)
    if "-" not in files:
        page = None if html_file is None else shlex.quote(html_file)
        render(document, console_out(), report_file=page, verbose=verbose)
        if verbose:
            render_job_shares(document, console_out())
    if opens and html_file not in (None, "-"):
        open_page(str(html_file))
