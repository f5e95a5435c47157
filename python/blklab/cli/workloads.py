"""`blklab workloads`: list shipped workloads, or check job files and descriptions of commands."""

from __future__ import annotations

import json

import click
from rich.table import Table

from blklab.cli.commands import described_command
from blklab.cli.options import json_option
from blklab.cli.output import write_text
from blklab.cli.tables import plain_table
from blklab.errors import UsageError
from blklab.quantities.units import format_bytes, format_duration
from blklab.report.terminal import console_out
from blklab.spec.modelled_options import GROUNDS, OptionUse, option_uses
from blklab.spec.purposes import PURPOSES, purposes_of, workloads_for
from blklab.spec.workloads import Workload, load_workload, shipped_commands, shipped_workloads


@described_command(
    name="workloads",
    examples=(
        ("all of them", "blklab workloads"),
        ("those that stand for a database", "blklab workloads --for database"),
        ("how each option of a job file of your own is understood", "blklab workloads my-load.fio"),
    ),
)
@click.argument("names", nargs=-1, metavar="[NAME|FILE.fio|trace:FILE]…")
@click.option(
    "--for",
    "purpose",
    metavar="|".join(PURPOSES),
    help="Only the shipped workloads that stand for such a machine.",
)
@click.option("--show", is_flag=True, help="Print the files themselves.")
@json_option
def command(*, names: tuple[str, ...], purpose: str | None, show: bool, json_file: str | None) -> None:
    """List the shipped workloads, or check job files of your own and say what becomes of each option."""
    if purpose is not None and names:
        raise UsageError("--for chooses among the shipped workloads", hint="leave the names out")
    chosen = names if purpose is None else workloads_for(purpose)
    workloads = [load_workload(name) for name in chosen or (*shipped_workloads(), *shipped_commands())]
    if json_file is not None:
        entries = [_entry(workload) for workload in workloads]
        content = {"schema": "blklab.workloads/1", "workloads": entries}
        write_text(json_file, json.dumps(content, indent=2, ensure_ascii=False))
        return
    console = console_out()
    if show:
        for workload in workloads:
            console.lines(workload.text.rstrip())
            console.print()
        return
    table = plain_table(("workload", "decided by", "purpose"))
    for workload in workloads:
        text = f"(control) {workload.purpose}" if workload.control else workload.purpose
        table.add_row(workload.name, workload.decide_by, text)
    if purpose is not None:
        console.prose(f"{purpose}: {PURPOSES[purpose]}")
        console.print()
    console.print(table)
    if purpose is not None:
        console.print()
        console.print(f"next: {_comparison_of(workloads)}", soft_wrap=True)
    elif not names:
        console.print()
        console.prose(f"Those that stand for a machine: `blklab workloads --for {'|'.join(PURPOSES)}`")
    for workload in workloads if names else []:
        console.print()
        console.print(workload.source, soft_wrap=True)
        if workload.replays:
            for note in workload.notes:
                console.print(f"- {note.message}", soft_wrap=True)
            continue
        console.print(_options_table(workload) if workload.command is None else _command_table(workload))
        console.print(_where_it_runs(workload), soft_wrap=True)


def _comparison_of(workloads: list[Workload]) -> str:
    """The command that compares schedulers under the job files among them; programs need to be installed."""
    jobs = [workload.name for workload in workloads if workload.command is None]
    return "blklab compare DIRECTORY " + " ".join(f"-w {name}" for name in jobs)


def _options_table(workload: Workload) -> Table:
    table = plain_table(("line", "section", "option", "honoured on", "meaning, or reason"))
    merged: dict[tuple[int, str], list[OptionUse]] = {}
    for use in option_uses(workload):
        merged.setdefault((use.line, use.option), []).append(use)
    for (line, option), uses in sorted(merged.items()):
        # An option of [global] applies to several sections, and is shown once.
        section = uses[0].job if len(uses) == 1 else f"{len(uses)} sections"
        first = uses[0]
        setting = f"{option}={first.value}" if first.value else option
        table.add_row(str(line), section, setting, GROUNDS[first.ground], first.meaning)
    return table


def _command_table(workload: Workload) -> Table:
    """The steps around a command and its needs."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    if workload.command is None:
        return table
    command = workload.command
    rows = {
        "set-up, once": command.set_up,
        "set-up, before each run": command.repeat_set_up,
        "page cache": "cold: unmounted and mounted again before each run" if command.cold else "warm",
        "measured": command.run,
        "room": format_bytes(command.space_bytes),
        "time limit": format_duration(command.time_limit_ns),
        "packages": ", ".join(dict.fromkeys(command.requires.values())),
    }
    for name, value in rows.items():
        if value:
            table.add_row(name, value.strip())
    return table


def _where_it_runs(workload: Workload) -> str:
    if workload.command is not None:
        return "runs on hosts; models have none of this machine's programs"
    if not workload.host_only:
        return "runs on hosts, in the simulator and in guests"
    reasons = dict.fromkeys(f"{note.option} ({note.message})" for note in workload.host_only)
    return f"runs on hosts; models refuse {', '.join(reasons)}"


def _entry(workload: Workload) -> dict[str, object]:
    return {
        "name": workload.name,
        "purpose": workload.purpose,
        "for": list(purposes_of(workload.text)),
        "control": workload.control,
        "decide_by": workload.decide_by,
        "focus": workload.focus,
        "reads": workload.reads,
        "writes": workload.writes,
        "command": None if workload.command is None else workload.command.model_dump(),
        "jobs": [{"name": job.name, "rw": job.rw, "numjobs": job.numjobs} for job in workload.jobs],
        "grounds": ["host"] if workload.host_only or workload.command is not None else ["host", "sim", "uml"],
        "options": [use.model_dump() for use in option_uses(workload)],
        "notes": [note.model_dump() for note in workload.notes],
        "warnings": [note.model_dump() for note in workload.warnings],
        "host_only": [note.model_dump() for note in workload.host_only],
    }
