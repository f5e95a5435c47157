"""`blklab runs`: list or remove stored runs."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict

import click
from rich.table import Table

from blklab.cli.options import json_option, store_option
from blklab.cli.output import console_out, write_text
from blklab.records.locations import run_files_folder
from blklab.records.store import Store


@click.command(name="runs")
@click.option("--remove", metavar="RUN", help="Remove a stored run permanently.")
@json_option
@store_option
def command(*, remove: str | None, json_file: str | None, store_url: str | None) -> None:
    """List stored runs, the newest first."""
    console = console_out()
    with Store.opened(store_url) as store:
        if remove is not None:
            name = store.remove(remove)
            shutil.rmtree(run_files_folder(name), ignore_errors=True)
            console.print(f"removed {name}", markup=False)
            return
        summaries = store.list_runs()
    if json_file is not None:
        content = {"schema": "blklab.runs/1", "runs": [asdict(summary) for summary in summaries]}
        write_text(json_file, json.dumps(content, indent=2, ensure_ascii=False))
        return
    if not summaries:
        console.print("no run is stored yet; `blklab compare` makes one", markup=False)
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    # People copy a run's name, so it must not wrap.
    for heading in ("run", "state"):
        table.add_column(heading, no_wrap=True)
    for heading in ("target", "schedulers", "workloads"):
        table.add_column(heading, overflow="fold")
    table.add_column("runs made", justify="right")
    for summary in summaries:
        table.add_row(
            summary.run_id,
            summary.state,
            summary.target,
            ", ".join(summary.schedulers),
            ", ".join(summary.workloads),
            str(summary.samples),
        )
    console.print(table)
