"""`blklab report`: a stored run again, analysed afresh."""

from __future__ import annotations

import click

from blklab.analysis.verdict import analyse
from blklab.cli.options import json_option, store_option
from blklab.cli.output import console_out, write_text
from blklab.records.store import Store
from blklab.report.documents.comparison import compare_document
from blklab.report.html.comparison import render_html
from blklab.report.text.comparison import render
from blklab.spec.goals import parse_goal


@click.command(name="report")
@click.argument("run", default="latest")
@click.option("--html", "html_file", metavar="FILE", help="Write the HTML report to FILE.")
@click.option(
    "--confidence", type=click.FloatRange(0.5, 1, min_open=True, max_open=True), help="Analyse with another."
)
@click.option(
    "--margin", type=click.FloatRange(0, 1, max_open=True), help="Analyse with another margin of equality."
)
@click.option("--goal", metavar="NAME|METRIC=WEIGHT,…", help="Analyse for another purpose.")
@json_option
@store_option
def command(
    *,
    run: str,
    html_file: str | None,
    confidence: float | None,
    margin: float | None,
    goal: str | None,
    json_file: str | None,
    store_url: str | None,
) -> None:
    """Show RUN (default: the latest): verdict, figures, warnings.

    The analysis is made anew from the stored samples, so it can be repeated with another confidence,
    margin or goal at any time.
    """
    with Store.opened(store_url) as store:
        record = store.load(run)
    purpose = None if goal is None else parse_goal(goal)
    given = (("confidence", confidence), ("margin", margin), ("goal", purpose))
    changed = {key: value for key, value in given if value is not None}
    record = record.model_copy(update={"spec": record.spec.model_copy(update=changed)})
    document = compare_document(record, analyse(record))
    if html_file is not None:
        write_text(html_file, render_html(record, document))
    if json_file is not None:
        write_text(json_file, document.model_dump_json(by_alias=True, indent=2))
    if json_file != "-" and html_file != "-":
        render(document, console_out())
