"""Analyses where the I/Os of a recording wait, by crates/blkrecord, as Python values.

*Queue* is from the queueing of an I/O to the last issue of its request, *device* from there to its
completion. All times are in nanoseconds.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from blklab import _core
from blklab.errors import UnknownNameError
from blklab.recordings.facts import Facts, Tally
from blklab.recordings.trace import trace_formats, translated


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Distribution(_Value):
    """Numbers counted by magnitude; quantiles are off by 3 % at most."""

    count: int
    sum: float
    min: int
    max: int
    p50: int
    p90: int
    p95: int
    p99: int
    p999: int
    classes: list[tuple[int, int]]
    """Upper bounds, each twice the one before, and the numbers up to the bound."""

    @property
    def mean(self) -> float:
        """The mean; 0 if there are no numbers."""
        return self.sum / self.count if self.count else 0.0


class Holders(_Value):
    """Holders of the device while a task's I/Os waited.

    While ``n`` I/Os are in the device, a task with ``m`` of them holds ``m/n`` of it; each waiting I/O adds
    that share of its time.
    """

    tasks: list[tuple[int, float]]
    """Places in `Waits.tasks`, and the nanoseconds of waiting; the largest first."""
    others_ns: float
    """Tasks without an account of their own: the fifteen with the most I/Os have one."""
    idle_ns: float
    """The device was idle."""


class OperationCount(_Value):
    """I/Os and bytes of an operation."""

    operation: str
    ios: int
    bytes: int


class TaskWaits(_Value):
    """One process in one control group, or all together."""

    tgid: int | None
    """The process, or the task if its process is unknown; None if neither is known."""
    command: str
    cgroup: str
    ioprio: list[tuple[int, int]]
    """Priorities as in linux/ioprio.h (65535 is unknown), and the I/Os that had them."""
    operations: list[OperationCount]
    merged: int
    split: int
    sync: int
    errors: int
    sequential: int
    """I/Os that begin where the task's I/O before ended."""
    ios: int
    bytes: int
    queue_ns: Distribution
    device_ns: Distribution
    latency_ns: Distribution
    read_latency_ns: Distribution
    write_latency_ns: Distribution
    inter_arrival_ns: Distribution
    bytes_per_io: Distribution
    held_in_queue: Holders
    """Holders of the device while this task's I/Os waited in the queue."""
    held_in_device: Holders
    """Tasks that shared the device with this task's I/Os."""


class Depths(_Value):
    """Numbers of I/Os at a time, weighted by time."""

    mean: float
    max: int
    p50: int
    p99: int


class DeviceWaits(_Value):
    """One device."""

    number: int
    ios: int
    bytes: int
    busy_ns: int | None
    """Time with at least one I/O in the device, or under way if issues are unknown; None if that is too."""
    in_queue: Depths | None
    """None if unknown."""
    in_device: Depths | None
    """None if unknown."""


class OverTime(_Value):
    """I/Os by latency and by the time of their completion, and sums over time."""

    column_ns: int
    bounds_ns: list[int]
    """Upper bounds of the rows, the smallest first."""
    counts: list[list[int]]
    """By row, then by column."""
    read_bytes: list[int]
    write_bytes: list[int]
    queue_ns: list[int]
    device_ns: list[int]


class Waits(_Value):
    """Everything that `blklab where` shows."""

    facts: Facts
    tally: Tally
    warnings: list[str]
    issues_known: bool
    """Whether queue and device can be told apart."""
    queues_known: bool
    """Whether I/Os begin with their queueing; otherwise they begin with their issue."""
    completions_known: bool
    """Whether there are completions, and so latencies."""
    all: TaskWaits
    tasks: list[TaskWaits]
    """Those that waited longest together come first."""
    devices: list[DeviceWaits]
    over_time: OverTime


def analyse_waits(path: str | Path, format_name: str | None = None) -> Waits:
    """Analyses a recording or another program's trace.

    Args:
        path: The file.
        format_name: Name of its format; None recognises it.

    Raises:
        FormatError: if the file is in no known format, or damaged from the start.
        UnknownNameError: if there is no such file or format.
    """
    if format_name is not None and format_name not in trace_formats():
        raise UnknownNameError(
            f"unknown trace format {format_name}", hint=f"known: {', '.join(trace_formats())}"
        )
    try:
        text = _core.analyse_waits(str(path), format_name)
    except _core.RecordError as error:
        raise translated(error) from error
    return Waits.model_validate_json(text)
