"""`blklab top`: tasks that do I/O now, with their priority class and level."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from blklab.cli.output import console_out, print_note
from blklab.errors import BlklabError, InterruptedRunError, SpaceError
from blklab.linux.disks.stack import all_disks, leaves_of
from blklab.linux.processes.io_priority import priority_support
from blklab.linux.processes.task_io import TaskRate, TaskReader, TaskSnapshot, by_process, rates
from blklab.linux.queue.schedulers import available_schedulers
from blklab.quantities.units import format_bytes, parse_duration_ns

SCHEMA = "blklab.top/1"


@dataclass(frozen=True)
class TopSample:
    """I/O between two readings."""

    number: int
    seconds: float
    rows: list[TaskRate]
    schedulers: dict[str, str]
    """Active scheduler by disk."""
    hidden: int

    def by_priority(self) -> dict[str, float]:
        """Bytes per second by class and level, the busiest first."""
        sums: dict[str, float] = {}
        for row in self.rows:
            name = _priority_text(row)
            sums[name] = sums.get(name, 0.0) + row.bytes_per_second
        return dict(sorted(sums.items(), key=lambda item: (-item[1], item[0])))


@click.command(name="top")
@click.option("-b", "--batch", is_flag=True, help="Print one sample after another instead of a live screen.")
@click.option("-n", "--samples", type=click.IntRange(min=1), help="Stop after this many samples.")
@click.option("-d", "--delay", default="1s", metavar="TIME", help="Length of a sample. Default: 1s.")
@click.option("-P", "--processes", is_flag=True, help="Add up the threads of each process.")
@click.option(
    "--json",
    "json_file",
    metavar="FILE",
    is_flag=False,
    flag_value="-",
    help="Write one line of JSON per sample to FILE, or to standard output for -.",
)
def command(*, batch: bool, samples: int | None, delay: str, processes: bool, json_file: str | None) -> None:
    """Show which tasks do I/O, in which priority class and at which level (be/0 is served before be/7).

    Priorities in brackets follow from the nice value. A buffered write counts for the task that made it, at
    the time of the call; a kernel thread writes it out later, under its own priority. Without root it shows
    your own processes only. Ctrl-C ends it.
    """
    delay_ns = parse_duration_ns(delay)
    stream = _samples(delay_ns, samples, processes=processes)
    with _ends_on_ctrl_c():
        if json_file is not None:
            _write_lines(stream, json_file)
        elif batch or not console_out().is_terminal:
            _print_each(stream)
        else:
            _show_live(stream)


def _samples(delay_ns: int, count: int | None, *, processes: bool) -> Iterator[TopSample]:
    reader = TaskReader()
    before = reader.read()
    if before.hidden and os.geteuid() != 0:
        print_note("processes of other users are hidden; root sees all")
    number = 0
    while count is None or number < count:
        time.sleep(delay_ns / 1e9)
        after = reader.read()
        number += 1
        yield _sample(number, before, after, reader, processes=processes)
        before = after


def _sample(
    number: int, before: TaskSnapshot, after: TaskSnapshot, reader: TaskReader, *, processes: bool
) -> TopSample:
    rows = rates(before, after, reader)
    return TopSample(
        number=number,
        seconds=(after.moment_ns - before.moment_ns) / 1e9,
        rows=by_process(rows) if processes else rows,
        schedulers=_active_schedulers(),
        hidden=after.hidden,
    )


def _active_schedulers() -> dict[str, str]:
    active: dict[str, str] = {}
    for disk in all_disks():
        with contextlib.suppress(BlklabError):
            for leaf in leaves_of(disk):
                scheduler, _ = available_schedulers(leaf)
                if scheduler is not None:
                    active[leaf.name] = scheduler
    return active


@contextlib.contextmanager
def _ends_on_ctrl_c() -> Iterator[None]:
    try:
        yield
    except InterruptedRunError as error:
        if error.signal_number != signal.SIGINT:
            raise


def _write_lines(stream: Iterator[TopSample], destination: str) -> None:
    if destination == "-":
        for sample in stream:
            click.echo(json.dumps(_as_json(sample), ensure_ascii=False))
        return
    try:
        with Path(destination).open("w", encoding="utf-8") as file:
            for sample in stream:
                file.write(json.dumps(_as_json(sample), ensure_ascii=False) + "\n")
                file.flush()
    except OSError as error:
        raise SpaceError(f"{destination}: cannot be written: {error.strerror}") from error


def _print_each(stream: Iterator[TopSample]) -> None:
    console = console_out()
    for sample in stream:
        for line in _heading(sample):
            console.print(line, soft_wrap=True)
        for cells in (TITLES, *map(_cells, sample.rows)):
            console.print(_LINE.format(*cells), markup=False, soft_wrap=True)
        console.print()


def _show_live(stream: Iterator[TopSample]) -> None:
    console = console_out()
    with Live(Text("sampling …"), console=console, screen=True, auto_refresh=False) as live:
        for sample in stream:
            room = max(1, console.size.height - len(_heading(sample)) - 2)
            live.update(Group(*_heading(sample), _table(sample.rows[:room])), refresh=True)


def _heading(sample: TopSample) -> list[Text]:
    read = sum(row.read_bytes_per_second for row in sample.rows)
    written = sum(row.write_bytes_per_second for row in sample.rows)
    total = f"sample {sample.number}: reads {_rate(read)}, writes {_rate(written)}"
    shares = [f"{name} {_rate(rate)}" for name, rate in sample.by_priority().items() if rate > 0]
    if shares:
        total += " (" + ", ".join(shares) + ")"
    honoured = [
        f"{disk} {name} honours {priority_support(name)}" for disk, name in _by_scheduler(sample.schedulers)
    ]
    return [Text(total, style="bold"), Text("; ".join(honoured))] if honoured else [Text(total, style="bold")]


def _by_scheduler(schedulers: dict[str, str]) -> list[tuple[str, str]]:
    """Disks under the same scheduler in one entry: ``sda, sdb``."""
    disks: dict[str, list[str]] = {}
    for disk, name in schedulers.items():
        disks.setdefault(name, []).append(disk)
    return [(f"{', '.join(names)}:", name) for name, names in disks.items()]


TITLES = ("TID", "PRIO", "USER", "READ", "WRITE", "WAITING", "COMMAND")
_LINE = "{:>8}  {:<7} {:<12} {:>12} {:>12} {:>8}  {}"
"""A line of batch mode: columns that stay in place, for grep and awk."""


def _cells(row: TaskRate) -> tuple[str, ...]:
    return (
        str(row.task),
        _priority_text(row),
        row.user,
        _rate(row.read_bytes_per_second),
        _rate(row.write_bytes_per_second),
        f"{100 * row.io_delay_fraction:.0f} %",
        row.command,
    )


def _table(rows: list[TaskRate]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", expand=True)
    for title in TITLES[:-1]:
        numeric = title not in ("PRIO", "USER")
        table.add_column(title, justify="right" if numeric else "left", no_wrap=True, min_width=len(title))
    table.add_column(TITLES[-1], no_wrap=True, overflow="ellipsis", ratio=1)
    for row in rows:
        table.add_row(*map(Text, _cells(row)))
    return table


def _priority_text(row: TaskRate) -> str:
    if row.priority is None:
        return "-"
    return f"({row.priority.text})" if row.priority.inherited else row.priority.text


def _rate(bytes_per_second: float) -> str:
    return f"{format_bytes(bytes_per_second)}/s"


def _as_json(sample: TopSample) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "sample": sample.number,
        "seconds": sample.seconds,
        "schedulers": sample.schedulers,
        "hidden_processes": sample.hidden,
        "tasks": [_row_as_json(row) for row in sample.rows],
    }


def _row_as_json(row: TaskRate) -> dict[str, Any]:
    return {
        "task": row.task,
        "process": row.process,
        "user": row.user,
        "command": row.command,
        "io_class": row.priority.io_class.name.lower() if row.priority else None,
        "io_level": row.priority.level if row.priority else None,
        "inherited": row.priority.inherited if row.priority else None,
        "read_bytes_per_second": row.read_bytes_per_second,
        "write_bytes_per_second": row.write_bytes_per_second,
        "io_delay_fraction": row.io_delay_fraction,
    }
