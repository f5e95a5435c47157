"""`blklab runs`: list or remove stored runs, or compare two of them."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict

import click
from rich.table import Table

from blklab.analysis.between_runs import compare_runs
from blklab.cli.commands import described_group
from blklab.cli.options import inference_options, json_option, junit_option, store_option
from blklab.cli.output import require_writable, write_text
from blklab.errors import ExitCode, StoreError, UsageError
from blklab.quantities.formatting import count_of
from blklab.records.run_files import run_files_folder
from blklab.records.run_ids import is_run_id
from blklab.records.store import RunSummary, Store
from blklab.report.documents.between_runs import change_document
from blklab.report.monitoring.junit import junit_xml
from blklab.report.monitoring.junit_changes import change_suite
from blklab.report.terminal import console_out, print_note
from blklab.report.text.between_runs import render_change

_VERDICT_WIDTH = 24
"""Columns that a long target leaves to the verdict."""
_WIDE = 110
"""From so many columns on the list has times and schedulers too."""


@described_group(
    name="runs",
    invoke_without_command=True,
    examples=(
        ("all stored runs", "blklab runs"),
        ("what changed between the last two?", "blklab runs compare OLD latest"),
        ("remove one", "blklab runs --remove OLD"),
    ),
)
@click.option("--remove", metavar="RUN", help="Remove a stored run permanently.")
@click.option("--all", "shows_all", is_flag=True, help="List the runs that are parts of studies too.")
@json_option
@store_option
@click.pass_context
def command(
    context: click.Context,
    *,
    remove: str | None,
    shows_all: bool,
    json_file: str | None,
    store_url: str | None,
) -> None:
    """List stored runs with their verdicts, the newest first.

    Runs that are parts of a study are left out unless `--all` is given.
    """
    if context.invoked_subcommand is not None:
        if remove is not None or json_file is not None or shows_all:
            raise UsageError("give options after the subcommand")
        context.obj = store_url
        return
    console = console_out()
    with Store.opened(store_url) as store:
        if remove is not None:
            name = store.remove(remove)
            if is_run_id(name):
                shutil.rmtree(run_files_folder(name), ignore_errors=True)
            console.print(f"removed {name}")
            return
        damaged: list[StoreError] = []
        stored = store.list_runs(damaged)
    summaries = [one for one in stored if shows_all or not one.study]
    of_studies = len(stored) - len(summaries)
    for error in damaged:
        print_note(f"left out: {error.message}")
    if json_file is not None:
        content = {"schema": "blklab.runs/1", "runs": [asdict(summary) for summary in summaries]}
        write_text(json_file, json.dumps(content, indent=2, ensure_ascii=False))
        return
    if not stored:
        console.print("no run is stored yet; `blklab compare` makes one")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    several_hosts = len({summary.host for summary in summaries if summary.host}) > 1
    has_room = console.width >= _WIDE
    # A row is a line: what has no room is cut, and people copy a run's name whole.
    table.add_column("run", no_wrap=True, min_width=max((len(one.run_id) for one in summaries), default=3))
    hosts = ["host"] if several_hosts else []
    more = ["made", "schedulers"] if has_room else []
    longest = max((len(_verdict(one)) for one in summaries), default=0)
    headings = (*hosts, *more[:1], "verdict", "target", *more[1:], "workloads")
    widths = {"host": 12, "made": 16, "verdict": min(max(longest, len("verdict")), _VERDICT_WIDTH)}
    # Without limits a table that is too wide loses whole columns.
    left = console.width - len("20260101-0000-abcd") - 2 * len(headings)
    left -= sum(widths.get(heading, 0) for heading in headings)
    widths |= {"target": max(8, left // 3), "schedulers": max(8, left // 4)}
    left -= sum(widths[heading] for heading in ("target", "schedulers") if heading in headings)
    widths["workloads"] = max(8, left)
    for heading in headings:
        width = widths[heading]
        table.add_column(heading, no_wrap=True, overflow="ellipsis", max_width=width)
    for summary in summaries:
        table.add_row(
            summary.run_id,
            *([summary.host] if several_hosts else []),
            *([summary.created_at[:16].replace("T", " ")] if has_room else []),
            _verdict(summary),
            summary.target,
            *([", ".join(summary.schedulers)] if has_room else []),
            ", ".join(summary.workloads),
        )
    if summaries:
        console.print(table)
    if of_studies:
        left_out = f"{count_of(of_studies, 'run')} of studies {'is' if of_studies == 1 else 'are'} left out"
        console.print(f"{left_out}; --all shows {'it' if of_studies == 1 else 'them'}", soft_wrap=True)


def _verdict(summary: RunSummary) -> str:
    """The verdict, or why there is none."""
    if summary.state == "complete":
        return summary.verdict
    return f"{summary.verdict} ({summary.state})" if summary.verdict else summary.state


@command.command(
    name="compare",
    examples=(
        ("the newest run with an older one", "blklab runs compare OLD"),
        ("two runs", "blklab runs compare OLD NEW"),
        ("for CI, with 5 % of tolerance", "blklab runs compare OLD latest --margin 5% --junit runs.xml"),
    ),
)
@click.argument("first", metavar="RUN")
@click.argument("second", metavar="RUN", default="latest")
@inference_options("runs")
@json_option
@junit_option
@store_option
@click.pass_obj
def compare_command(
    outer_store: str | None,
    *,
    first: str,
    second: str,
    confidence: float,
    margin: float,
    json_file: str | None,
    junit_file: str | None,
    store_url: str | None,
) -> int:
    """Compare two stored runs: what changed from the first to the second, and what differs in their set-up.

    Exits with 8 if a metric that decides a workload is worse in the second run (default: the latest).
    """
    require_writable(json_file, junit_file)
    with Store.opened(store_url or outer_store) as store:
        records = store.load(first), store.load(second)
    found = compare_runs(*records, confidence=confidence, margin=margin)
    if json_file is not None:
        write_text(json_file, change_document(found).model_dump_json(by_alias=True, indent=2))
    if junit_file is not None:
        write_text(junit_file, junit_xml([change_suite(found)]))
    if "-" not in (json_file, junit_file):
        render_change(found, console_out())
    return ExitCode.SLOWER if found.status in ("slower", "mixed") else ExitCode.OK
