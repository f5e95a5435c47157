"""`blklab report`: analyse a stored run again."""

from __future__ import annotations

import click

from blklab.analysis.verdict import analyse
from blklab.cli.monitoring_files import write_monitoring
from blklab.cli.options import (
    TopicCommand,
    experiment_options,
    json_option,
    junit_option,
    openmetrics_option,
    store_option,
)
from blklab.cli.output import console_out, require_writable, write_text
from blklab.records.store import Store
from blklab.report.documents.comparison import compare_document
from blklab.report.html.comparison import render_html
from blklab.report.text.comparison import render
from blklab.spec.request import SpecValues


@click.command(name="report", cls=TopicCommand)
@click.argument("run", default="latest")
@click.option("--html", "html_file", metavar="FILE", help="Write the HTML report to FILE.")
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
    if json_file is not None:
        write_text(json_file, document.model_dump_json(by_alias=True, indent=2))
    write_monitoring([document], openmetrics_file, junit_file)
    if "-" not in files:
        render(document, console_out(), verbose=verbose)
