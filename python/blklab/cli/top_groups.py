"""The rows of `blklab top` added up by control group, for the key `c`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from rich.text import Text

from blklab.cli.top_screen import ScreenColumn, ScreenSample
from blklab.linux.processes.task_io import TaskRate
from blklab.quantities.units import format_bytes, format_duration
from blklab.recordings.waits import Distribution, TaskWaits

UNKNOWN = "(unknown)"
"""The group of a task that ended before it could be read."""
RATE_COLUMNS = (
    ScreenColumn("TASKS", 6, numeric=True),
    ScreenColumn("READ", 12, numeric=True, sorted_by="rb"),
    ScreenColumn("WRITE", 12, numeric=True, sorted_by="tb"),
    ScreenColumn("GROUP"),
)
RATE_ORDERS = {"b": "bytes", "r": "reads", "t": "writes"}
WAIT_COLUMNS = (
    ScreenColumn("TASKS", 6, numeric=True),
    ScreenColumn("I/O/S", 9, numeric=True, sorted_by="i"),
    ScreenColumn("B/S", 12, numeric=True, sorted_by="b"),
    ScreenColumn("QUEUE MEAN", 10, numeric=True),
    ScreenColumn("DEVICE MEAN", 11, numeric=True),
    ScreenColumn("MAX", 8, numeric=True, rank=1),
    ScreenColumn("GROUP"),
)
"""Without percentiles, which cannot be added up."""
WAIT_ORDERS = {"w": "waiting", "i": "I/Os", "b": "bytes"}

_Row = TypeVar("_Row", TaskRate, TaskWaits)


@dataclass(frozen=True)
class GroupRow:
    """A control group."""

    cells: tuple[str, ...]
    """The last one is its name."""
    amounts: Mapping[str, float]
    """For each key that sorts, what it sorts by; the most comes first."""


@dataclass(frozen=True)
class GroupSample:
    """A sample with a row for each control group."""

    of_tasks: ScreenSample
    columns: Sequence[ScreenColumn]
    orders: Mapping[str, str]
    rows: Sequence[GroupRow]

    def heading(self) -> list[Text]:
        """As of the tasks."""
        return self.of_tasks.heading()

    def rows_of_cells(self, order: str | None = None) -> list[tuple[str, ...]]:
        """A row for each group."""
        key = order or next(iter(self.orders))
        ordered = sorted(self.rows, key=lambda row: (-row.amounts[key], row.cells[-1]))
        return [row.cells for row in ordered]

    def footing(self) -> list[str]:
        """As of the tasks."""
        return self.of_tasks.footing()

    def as_json(self) -> dict[str, Any]:
        """As of the tasks."""
        return self.of_tasks.as_json()

    def by_group(self) -> ScreenSample:
        """Itself."""
        return self


def rates_by_group(sample: ScreenSample, tasks: Sequence[TaskRate]) -> GroupSample:
    """The rates of tasks, added up by control group."""
    rows = []
    for name, members in _members(tasks).items():
        read = sum(task.read_bytes_per_second for task in members)
        written = sum(task.write_bytes_per_second for task in members)
        cells = (str(len(members)), f"{format_bytes(read)}/s", f"{format_bytes(written)}/s", name)
        rows.append(GroupRow(cells, {"b": read + written, "r": read, "t": written}))
    return GroupSample(sample, RATE_COLUMNS, RATE_ORDERS, rows)


def waits_by_group(sample: ScreenSample, tasks: Sequence[TaskWaits], seconds: float) -> GroupSample:
    """The I/Os of processes, added up by control group.

    Args:
        sample: The sample that they are of.
        tasks: The processes.
        seconds: Length of the sample.
    """
    rows = []
    for name, members in _members(tasks).items():
        ios = sum(task.ios for task in members)
        moved = sum(task.bytes for task in members)
        cells = (
            str(len(members)),
            f"{ios / seconds:.0f}",
            f"{format_bytes(moved / seconds)}/s",
            _mean([task.queue_ns for task in members]),
            _mean([task.device_ns for task in members]),
            format_duration(max(task.latency_ns.max for task in members)),
            name,
        )
        waited_ns = sum(task.latency_ns.sum for task in members)
        rows.append(GroupRow(cells, {"w": waited_ns, "i": ios, "b": moved}))
    return GroupSample(sample, WAIT_COLUMNS, WAIT_ORDERS, rows)


def _members(tasks: Sequence[_Row]) -> dict[str, list[_Row]]:
    found: dict[str, list[_Row]] = {}
    for task in tasks:
        found.setdefault(task.cgroup or UNKNOWN, []).append(task)
    return found


def _mean(parts: Sequence[Distribution]) -> str:
    count = sum(part.count for part in parts)
    return format_duration(round(sum(part.sum for part in parts) / count)) if count else "-"
