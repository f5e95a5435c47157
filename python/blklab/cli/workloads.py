"""`blklab workloads`: what can be run."""

from __future__ import annotations

import json

import click
from rich.table import Table

from blklab.cli.options import json_option
from blklab.cli.output import console_out, write_text
from blklab.spec.workloads import Workload, load_workload, shipped_workloads


@click.command(name="workloads")
@click.argument("names", nargs=-1, metavar="[NAME|FILE.fio]…")
@click.option("--show", is_flag=True, help="Print the job files themselves.")
@json_option
def command(*, names: tuple[str, ...], show: bool, json_file: str | None) -> None:
    """List the shipped workloads, or check and describe job files of your own."""
    workloads = [load_workload(name) for name in names or shipped_workloads()]
    if json_file is not None:
        entries = [_entry(workload) for workload in workloads]
        content = {"schema": "blklab.workloads/1", "workloads": entries}
        write_text(json_file, json.dumps(content, indent=2, ensure_ascii=False))
        return
    console = console_out()
    if show:
        for workload in workloads:
            console.print(workload.text.rstrip(), markup=False, soft_wrap=True)
            console.print()
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("workload", "decided by", "purpose"):
        table.add_column(heading, overflow="fold")
    for workload in workloads:
        purpose = f"(control) {workload.purpose}" if workload.control else workload.purpose
        table.add_row(workload.name, workload.decide_by, purpose)
    console.print(table)


def _entry(workload: Workload) -> dict[str, object]:
    return {
        "name": workload.name,
        "purpose": workload.purpose,
        "control": workload.control,
        "decide_by": workload.decide_by,
        "focus": workload.focus,
        "reads": workload.reads,
        "writes": workload.writes,
        "jobs": [{"name": job.name, "rw": job.rw, "numjobs": job.numjobs} for job in workload.jobs],
        "warnings": [note.model_dump() for note in workload.warnings],
    }
