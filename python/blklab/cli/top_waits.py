"""`blklab top` with a target: waits of its disks' I/Os, by the recorder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from blklab.cli.top_groups import WAIT_ORDERS, GroupSample, waits_by_group
from blklab.cli.top_screen import ScreenColumn
from blklab.linux.disks.resolution import Resolution
from blklab.quantities.units import format_bytes, format_duration
from blklab.recordings.waits import TaskWaits, Waits
from blklab.report.terminal import print_note, styled
from blklab.report.waits.text import device_lines, held_text, task_name

SCHEMA = "blklab.top-waits/1"
COLUMNS = (
    ScreenColumn("I/O/S", 9, numeric=True, sorted_by="i"),
    ScreenColumn("B/S", 12, numeric=True, sorted_by="b"),
    ScreenColumn("QUEUE MEAN", 10, numeric=True),
    ScreenColumn("P99", 8, numeric=True, rank=1),
    ScreenColumn("DEVICE MEAN", 11, numeric=True),
    ScreenColumn("P99", 8, numeric=True, rank=2),
    ScreenColumn("MAX", 8, numeric=True, rank=3),
    ScreenColumn("TASK"),
)
MOST_HELD = 3


@dataclass(frozen=True)
class WaitsSample:
    """The I/Os that completed in a stretch of time."""

    number: int
    waits: Waits

    columns = COLUMNS
    orders = WAIT_ORDERS

    @property
    def seconds(self) -> float:
        """Length of the stretch."""
        return self.waits.tally.span_ns / 1e9

    def heading(self) -> list[Text]:
        """The sum of all tasks, and a line for each disk."""
        everything = self.waits.all
        total = f"sample {self.number}: {_per_second(everything.ios, self)} I/O/s, "
        total += f"{format_bytes(everything.bytes / self.seconds)}/s"
        lines = [styled((total, "bold")), *map(styled, device_lines(self.waits))]
        if self.waits.tally.lost:
            lines.append(styled(f"{self.waits.tally.lost} events were lost, so some I/Os are missing"))
        return lines

    def rows_of_cells(self, order: str | None = None) -> list[tuple[str, ...]]:
        """A row for each process in each control group; those that waited longest together come first."""
        tasks = self.waits.tasks
        if order == "i":
            tasks = sorted(tasks, key=lambda task: -task.ios)
        elif order == "b":
            tasks = sorted(tasks, key=lambda task: -task.bytes)
        return [self._cells(task) for task in tasks]

    def _cells(self, task: TaskWaits) -> tuple[str, ...]:
        return (
            _per_second(task.ios, self),
            f"{format_bytes(task.bytes / self.seconds)}/s",
            _time(task.queue_ns.mean),
            _time(task.queue_ns.p99),
            _time(task.device_ns.mean),
            _time(task.device_ns.p99),
            _time(task.latency_ns.max),
            task_name(task),
        )

    def footing(self) -> list[str]:
        """Holders of the device while the tasks that waited longest had I/Os in the queue."""
        held = [(task, held_text(task.held_in_queue, self.waits)) for task in self.waits.tasks[:MOST_HELD]]
        return [f"{task_name(task)} waited in the queue for {text}" for task, text in held if text]

    def as_json(self) -> dict[str, Any]:
        """`blklab.top-waits/1`."""
        waits = self.waits.model_dump(mode="json", exclude={"facts", "over_time"})
        names = {device.number: device for device in self.waits.facts.devices}
        for device in waits["devices"]:
            device["name"] = names[device["number"]].name if device["number"] in names else None
        return {"schema": SCHEMA, "sample": self.number, "seconds": self.seconds, **waits}

    def by_group(self) -> GroupSample:
        """A row for each control group."""
        return waits_by_group(self, self.waits.tasks, self.seconds)


@contextmanager
def waits_samples(
    resolution: Resolution, delay_ns: int, count: int | None
) -> Iterator[Iterator[WaitsSample]]:
    """Samples of the disks' I/Os, each over `delay_ns`; None as `count` never ends.

    Raises:
        NotRootError: if root is missing.
        RequirementError: if this kernel cannot record.
    """
    from blklab.linux.recording.live import live_waits  # noqa: PLC0415 - needs Linux

    with live_waits(resolution) as (capture, missing):
        for text in missing:
            print_note(f"not recorded: {text}")
        yield (
            WaitsSample(number + 1, capture.window(delay_ns))
            for number in (_endless() if count is None else range(count))
        )


def _endless() -> Iterator[int]:
    number = 0
    while True:
        yield number
        number += 1


def _per_second(ios: int, sample: WaitsSample) -> str:
    return f"{ios / sample.seconds:.0f}"


def _time(ns: float) -> str:
    return format_duration(round(ns))
