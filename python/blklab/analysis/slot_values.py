"""The values of slots, and of several slots together where one has too few I/Os for a metric.

A 99.9th percentile needs thousands of I/Os, and a slot may have a few hundred. Percentiles are never
averaged, so the histograms of a scheduler's slots in consecutive rounds are merged into one value. All
schedulers are grouped alike, and the random order of every round is still a coin toss between two of them, so
a group counts like a round.

The size of groups is decided by the first rounds, and is the same for all schedulers. It does not change
later, so a look at more rounds leaves the values so far as they were.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence

from blklab.analysis.metrics import METRICS, Metric
from blklab.analysis.statistics.series import Series
from blklab.analysis.statistics.switchback import WARM_UP
from blklab.records.samples import DirectionSample, JobSample, LatencyHistogram

LARGEST_GROUP = 1024
"""Rounds. What is still too rare then has a value that rests on fewer I/Os than it should."""

Enter = Callable[[str, str, int, float], None]
"""(metric, scheduler, position, value): receives each value as it becomes known."""


class SlotValues:
    """The values of one workload's slots, entered as they come."""

    def __init__(self, enter: Enter, metrics: Iterable[Metric] | None = None) -> None:
        """Begins without slots.

        Args:
            enter: Receives the values.
            metrics: Those whose values are asked for.
        """
        self._enter = enter
        self._metrics = [
            metric
            # Listed here and not with the module: listing loads the metrics of other packages.
            for metric in (METRICS.values() if metrics is None else metrics)
            if not metric.of_loads_that_end
        ]
        self._slots: dict[str, dict[int, Sequence[JobSample]]] = {}
        """By scheduler and round."""
        self._first: int | None = None
        """The first round that has a slot; earlier ones may have failed."""
        self._groups: dict[str, int] | None = None
        """Rounds in a group, by metric; None while the first rounds run."""
        self._by_size: dict[int, dict[str, dict[str, dict[int, float]]]] = {}
        """Size → metric → series, for sizes that were asked for."""

    def add(self, scheduler: str, number: int, jobs: Sequence[JobSample]) -> None:
        """Adds the measured sections of a slot.

        Args:
            scheduler: Its label.
            number: Of the round.
            jobs: The sections that the metrics are computed from.
        """
        if self._first is None:
            self._first = number
        if self._groups is None and number >= self._first + WARM_UP:
            self._groups = self._sizes()
            for label, slots in self._slots.items():
                for earlier in sorted(slots):
                    self._enter_new(label, earlier, first_rounds=True)
        self._slots.setdefault(scheduler, {})[number] = jobs
        self._enter_new(scheduler, number)

    def group_of(self, metric: str) -> int | None:
        """Rounds that a value of a metric covers; None if that is not known yet."""
        if METRICS[metric].fewest_ios <= 1:
            return 1
        return None if self._groups is None else self._groups[metric]

    def in_groups(self, metric: str, size: int) -> Series:
        """A metric's series in groups of another size, for questions about several metrics."""
        known = self._by_size.setdefault(size, {}).setdefault(metric, {})
        for scheduler, slots in self._slots.items():
            values = known.setdefault(scheduler, {})
            for position in range(0, max(slots) + 1, size):
                group = None if position in values else self._group(scheduler, position, size)
                value = None if group is None else METRICS[metric].compute(group)
                if value is not None:
                    values[position] = value
        return {scheduler: values for scheduler, values in known.items() if values}

    def _enter_new(self, scheduler: str, number: int, *, first_rounds: bool = False) -> None:
        """Enters the values that a slot completes."""
        groups: dict[int, Sequence[JobSample] | None] = {}
        for metric in self._metrics:
            size = self.group_of(metric.name)
            if size is None or (first_rounds and metric.fewest_ios <= 1):
                continue
            position = number - number % size
            if size not in groups:
                groups[size] = self._group(scheduler, position, size)
            group = groups[size]
            value = None if group is None else metric.compute(group)
            if value is not None:
                self._enter(metric.name, scheduler, position, value)

    def _group(self, scheduler: str, position: int, size: int) -> Sequence[JobSample] | None:
        """The sections of a whole group; None if a slot of it is missing."""
        slots = self._slots[scheduler]
        if any(number not in slots for number in range(position, position + size)):
            return None
        return merged_jobs([slots[number] for number in range(position, position + size)])

    def _sizes(self) -> dict[str, int]:
        """A power of two for each metric, by the scheduler with the fewest I/Os in a typical slot."""
        sizes = {}
        for metric in self._metrics:
            typical = [
                statistics.median(metric.counted_ios(jobs) for jobs in slots.values())
                for slots in self._slots.values()
            ]
            fewest = min(typical, default=0)
            # Without any such I/O there will be no value, and no reason to wait for one.
            missing = metric.fewest_ios / fewest if fewest else 1.0
            sizes[metric.name] = min(LARGEST_GROUP, 1 << max(0, math.ceil(math.log2(missing))))
        return sizes


def merged_jobs(slots: Sequence[Sequence[JobSample]]) -> Sequence[JobSample]:
    """The sections of several slots as if they were one: counts and times added, histograms merged."""
    if len(slots) == 1:
        return slots[0]
    by_name: dict[str, list[JobSample]] = {}
    for jobs in slots:
        for job in jobs:
            by_name.setdefault(job.name, []).append(job)
    return [_merged(jobs) for jobs in by_name.values()]


def _merged(jobs: Sequence[JobSample]) -> JobSample:
    by_direction: dict[str, list[DirectionSample]] = {}
    for job in jobs:
        for entry in job.directions:
            by_direction.setdefault(entry.direction, []).append(entry)
    first = jobs[0]
    return JobSample(
        name=first.name,
        clones=first.clones,
        runtime_ns=sum(job.runtime_ns for job in jobs),
        directions=[
            DirectionSample(
                direction=entries[0].direction,
                ios=sum(entry.ios for entry in entries),
                bytes=sum(entry.bytes for entry in entries),
                runtime_ns=sum(entry.runtime_ns for entry in entries),
                latency=LatencyHistogram.merged(entry.latency for entry in entries),
            )
            for entries in by_direction.values()
        ],
        cpu_user_ns=_total([job.cpu_user_ns for job in jobs]),
        cpu_system_ns=_total([job.cpu_system_ns for job in jobs]),
        context_switches=_total([job.context_switches for job in jobs]),
        clone_bytes=_totals([job.clone_bytes for job in jobs]),
        promised_weight=first.promised_weight,
    )


def _total(parts: Sequence[int | None]) -> int | None:
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def _totals(parts: Sequence[list[int] | None]) -> list[int] | None:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or len({len(part) for part in known}) != 1:
        return None
    return [sum(clone) for clone in zip(*known, strict=True)]
