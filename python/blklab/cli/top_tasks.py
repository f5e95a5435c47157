"""`blklab top` without a target: tasks that do I/O, by the kernel's accounting."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from blklab.cli.top_groups import RATE_ORDERS, GroupSample, rates_by_group
from blklab.cli.top_screen import ScreenColumn
from blklab.errors import BlklabError
from blklab.linux.disks.stack import all_disks, leaves_of
from blklab.linux.processes.io_priority import priority_support
from blklab.linux.processes.task_io import TaskRate, TaskReader, TaskSnapshot, by_process, rates
from blklab.linux.queue.schedulers import available_schedulers
from blklab.quantities.units import format_bytes
from blklab.report.terminal import print_note, styled

SCHEMA = "blklab.top/1"
COLUMNS = (
    ScreenColumn("TID", 8, numeric=True),
    ScreenColumn("PRIO", 7),
    ScreenColumn("USER", 12, rank=1),
    ScreenColumn("READ", 12, numeric=True, sorted_by="rb"),
    ScreenColumn("WRITE", 12, numeric=True, sorted_by="tb"),
    ScreenColumn("WAITING", 8, numeric=True, sorted_by="w"),
    ScreenColumn("COMMAND"),
)
ORDERS = {**RATE_ORDERS, "w": "waiting"}


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

    columns = COLUMNS
    orders = ORDERS

    def heading(self) -> list[Text]:
        """The sums of all tasks, and the priorities that count."""
        return _heading(self)

    def rows_of_cells(self, order: str | None = None) -> list[tuple[str, ...]]:
        """A row for each task."""
        return [_cells(row) for row in _sorted(self.rows, order)]

    def footing(self) -> list[str]:
        """Nothing."""
        return []

    def as_json(self) -> dict[str, Any]:
        """`blklab.top/1`."""
        return _as_json(self)

    def by_group(self) -> GroupSample:
        """A row for each control group."""
        return rates_by_group(self, self.rows)


def task_samples(delay_ns: int, count: int | None, *, processes: bool) -> Iterator[TopSample]:
    """Samples of all tasks, each over `delay_ns`; None as `count` never ends."""
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


def _heading(sample: TopSample) -> list[Text]:
    read = sum(row.read_bytes_per_second for row in sample.rows)
    written = sum(row.write_bytes_per_second for row in sample.rows)
    total = f"sample {sample.number}: reads {_rate(read)}, writes {_rate(written)}"
    shares = [f"{name} {_rate(rate)}" for name, rate in sample.by_priority().items() if rate > 0]
    if shares:
        total += "; by priority: " + ", ".join(shares)
    honoured = [
        f"{disk} {name} honours {priority_support(name)}" for disk, name in _by_scheduler(sample.schedulers)
    ]
    return [styled((total, "bold")), *([styled("; ".join(honoured))] if honoured else [])]


def _by_scheduler(schedulers: dict[str, str]) -> list[tuple[str, str]]:
    """Disks under the same scheduler in one entry: ``sda, sdb``."""
    disks: dict[str, list[str]] = {}
    for disk, name in schedulers.items():
        disks.setdefault(name, []).append(disk)
    return [(f"{', '.join(names)}:", name) for name, names in disks.items()]


def _sorted(rows: list[TaskRate], order: str | None) -> list[TaskRate]:
    """The rows by a key of `ORDERS`; without one as they come, the busiest first."""
    if order == "r":
        return sorted(rows, key=lambda row: -row.read_bytes_per_second)
    if order == "t":
        return sorted(rows, key=lambda row: -row.write_bytes_per_second)
    if order == "w":
        return sorted(rows, key=lambda row: -row.io_delay_fraction)
    return rows


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
