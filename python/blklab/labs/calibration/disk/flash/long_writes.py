"""Long writes of a flash drive: measures them, and gives the figures of buffer and cells that follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from blklab.labs.calibration.disk.flash.figures import FlashDrive, kib_ns_of
from blklab.labs.calibration.disk.flash.filling import (
    Point,
    Stages,
    between_s,
    chosen_s,
    last_line,
    lengths_s,
    stages_of,
)
from blklab.labs.calibration.disk.flash.loads import KIB, MIB, SLOT_KIB, LoadNumber, filling
from blklab.labs.calibration.disk.limits import buffer_load
from blklab.labs.calibration.disk.loads import CalibrationLoad, DiskLoad
from blklab.labs.calibration.disk.runs import Runs

HOST_NS = 4000
"""Of a latency, about what this machine itself computes."""
_ROUNDS = 2
_NEEDED_S = (0.05, 0.25, 0.5, 1, 2)
_MOST_FILL_S = 16.0
_APART = 1.15
"""Times by which single writes must outrun the slow cells to tell the buffer from the fast ones."""
_SLOW_FILL_KIB = (4, 8, 16, 32, 64, 128, 256, 512)
_MOST_SLOW_FILL_S = 8.0
_MOST_SLOW_FILLS = 100_000
"""I/Os of such a load: more would take long to simulate."""
_LEAST_PART = 0.1
_LEAST_SLC = 0.02
"""Of what is written beyond the slow rate: a smaller cache of fast cells is none."""
_SMALL_S = 80e-6
"""Of the link, for a write of a deep queue: if all cells have something to do, fast ones are not emptied."""
_LEAST_SMALL_KIB = 4
_SLC_PARTS = (0.6, 0.7, 0.8, 0.9)
_BEFORE = 0.4
_BEYOND = (1.3, 1.8)
"""Parts of the time in which writes fill everything."""
_LONG_BEFORE = 0.1
"""The same for smaller writes, which fill everything sooner: they leave no time to empty anything."""
_RATE_ERROR = 0.001
_ASSUMED_BUFFER = 32 * MIB
_LEAST_BUFFER = float(MIB)
_FAST_ENOUGH = 0.9
"""Of the time in which the link fills a stripe, for cells that keep up with it: where the search begins."""


@dataclass(frozen=True)
class LongWrites:
    """Findings of long writes."""

    stages: Stages | None
    """None if writes never slow down."""
    rows: Sequence[LoadNumber]
    """To fit to."""
    seen_bytes: float
    """Written at most without a pause."""
    heights: Sequence[tuple[float, float]] = ()
    """Rates of writes between which fast cells are not emptied, and heights of their last lines; the fastest
    first."""

    @property
    def known(self) -> dict[str, float]:
        """Standard deviations of the logarithms of figures that the stages give without the simulator."""
        return {} if self.stages is None else {"program": _RATE_ERROR}


def long_writes(runs: Runs, start: FlashDrive) -> LongWrites:
    """Long writes that show the stages; none if writes never slow down."""
    facts = runs.ground.facts
    space = facts.space_bytes
    usual = buffer_load(
        queue_depth=facts.queues.depth, max_sectors_kb=facts.queues.max_sectors_kb, space_bytes=space
    )

    def fill(block_kib: int, depth: int, length_s: float) -> LoadNumber:
        runtime_us = round(1e6 * min(length_s, _MOST_FILL_S))
        load = filling(block_kib, depth, runtime_us, space)
        return LoadNumber(load, "iops", runtime_us)

    longest_s = max((point.time_s for point in _points(runs, usual)), default=0.0)
    for length_s in _NEEDED_S:
        # A short budget has left them out.
        if length_s > longest_s:
            runs.rested(usual, round(1e6 * length_s))
    seen = _points(runs, usual)
    seen_bytes = max(point.written for point in seen)
    line = last_line(seen)
    if line is None:
        return LongWrites(None, (), seen_bytes)
    first = [fill(usual.block_kib, usual.depth, length_s) for length_s in lengths_s(seen, line)]
    for row in first:
        runs.rested(row.load, row.runtime_us)
    found = stages_of([point for row in first for point in _points(runs, row.load)])
    if found.fast_rate is None:
        points = [*seen, *(point for row in first for point in _points(runs, row.load))]
        more = [fill(usual.block_kib, usual.depth, length_s) for length_s in between_s(points, line)]
        for row in more:
            runs.rested(row.load, row.runtime_us)
        found = stages_of([point for row in [*first, *more] for point in _points(runs, row.load)])
    # The runs that came before are longer: they know the last line better.
    stages = replace(found, slow_rate=line.rate, height_bytes=line.height)
    rows = [fill(usual.block_kib, usual.depth, length_s) for length_s in chosen_s(stages)]
    heights = [(stages.first_rate, stages.height_bytes)]
    if stages.fast_rate is None:
        knee_s = stages.height_bytes / (stages.first_rate - stages.slow_rate)
        small_kib = _small_kib(stages.first_rate)
        if small_kib < usual.block_kib:
            small = [fill(small_kib, usual.depth, part * knee_s) for part in (_LONG_BEFORE, _BEYOND[0])]
            heights = [_measured_height(runs, small, stages.slow_rate)]
            rows += small
        single = [fill(*one) for one in _slow_fills(start, stages, heights[0][1])]
        if single:
            heights.append(_measured_height(runs, single, stages.slow_rate))
            rows += single
    rows = list({row.load.name: row for row in rows}.values())
    for _ in range(_ROUNDS):
        for row in rows:
            runs.rested(row.load, row.runtime_us)
    return LongWrites(stages, rows, seen_bytes, heights)


def _small_kib(rate: float) -> int:
    kib = _LEAST_SMALL_KIB
    while 2 * kib * KIB < _SMALL_S * rate:
        kib *= 2
    return kib


def _measured_height(runs: Runs, rows: Sequence[LoadNumber], slow_rate: float) -> tuple[float, float]:
    """The rate of the shortest load, and the height of the last line from the longest."""
    for row in rows:
        runs.rested(row.load, row.runtime_us)
    points = sorted(
        (point for row in rows for point in _points(runs, row.load)), key=lambda point: point.time_s
    )
    before, beyond = points[0], points[-1]
    return before.written / before.time_s, beyond.written - slow_rate * beyond.time_s


def _points(runs: Runs, load: CalibrationLoad) -> list[Point]:
    return [Point(one.ios / one.iops, one.ios * load.block_kib * KIB) for one in runs.of(load)]


def _slow_fills(start: FlashDrive, stages: Stages, height_bytes: float) -> list[tuple[int, int, float]]:
    """Single writes slower than the link: what fast cells take depends on the rate, a buffer does not.

    The slower they are, the more it differs, and the longer it takes.
    """
    for block_kib in _SLOW_FILL_KIB:
        rate = _single_rate(start, block_kib)
        if rate < _APART * stages.slow_rate:
            continue
        # With a slower rate less lies beyond the last line.
        part = (1 - stages.slow_rate / rate) / (1 - stages.slow_rate / stages.first_rate)
        most_s = max(part, _LEAST_PART) * height_bytes / (rate - stages.slow_rate)
        longest_s = _BEYOND[-1] * most_s
        if longest_s < _MOST_SLOW_FILL_S and longest_s * rate < _MOST_SLOW_FILLS * block_kib * KIB:
            return [(block_kib, 1, part * most_s) for part in (_BEFORE, *_BEYOND)]
    return []


def _single_rate(start: FlashDrive, block_kib: int) -> float:
    """Bytes a second of single writes."""
    outside_ns = start.command + start.interface + HOST_NS
    return 1e9 * KIB * block_kib / (outside_ns + block_kib * start.link_write)


def with_long_writes(runs: Runs, start: FlashDrive, fills: LongWrites) -> FlashDrive:
    """Closed forms of long writes and of flushes."""
    stages = fills.stages
    facts = runs.ground.facts
    synced_ns = _synced_ns(runs, start)
    if stages is None:
        # All writes ended on the cells that take short ones; nobody knows of others.
        program = synced_ns or start.slc_program
        return replace(start, program=program, slc_program=program, slc_bytes=fills.seen_bytes)
    start = replace(
        start,
        program=1e9 * start.stripe_bytes / stages.slow_rate,
        link_write=kib_ns_of(stages.first_rate),
    )
    if stages.fast_rate is not None:
        return replace(
            start,
            slc_program=1e9 * start.stripe_bytes / stages.fast_rate,
            slc_bytes=stages.slc_bytes or 0.0,
            buffer_bytes=max(1.0, stages.buffer_bytes or 0.0),
            flush=max(0.0, (synced_ns or 0.0) - 1e9 * start.stripe_bytes / stages.fast_rate),
        )
    fast = min(_FAST_ENOUGH * start.stripe_bytes / stages.first_rate * 1e9, synced_ns or start.slc_program)
    slc, buffer = _apart(fills.heights, stages.slow_rate, facts.space_bytes)
    if slc < _LEAST_SLC * stages.height_bytes:
        slc = 0.0
    flush = max(0.0, (synced_ns or 0.0) - (fast if slc else start.program))
    return replace(start, slc_program=fast, slc_bytes=slc, buffer_bytes=buffer, flush=flush)


def divisions(start: FlashDrive, fills: LongWrites) -> list[FlashDrive]:
    """The drive with less of what the last line's height shows in fast cells, and more in the buffer.

    While fast cells are filled by fewer writes than they could take, they are emptied already, so they seem
    larger than they are.
    """
    stages = fills.stages
    if stages is None or stages.fast_rate is not None or not start.slc_bytes:
        return []
    beyond = 1 - stages.slow_rate / fills.heights[-1][0]
    found = []
    for part in _SLC_PARTS:
        slc = part * start.slc_bytes
        buffer = start.buffer_bytes + (start.slc_bytes - slc) * beyond
        found.append(replace(start, slc_bytes=slc, buffer_bytes=buffer))
    return found


def _apart(heights: Sequence[tuple[float, float]], slow: float, space: int) -> tuple[float, float]:
    """Fast cells and buffer, from what is written beyond the slow rate at one or two rates."""
    (rate, height), *others = heights
    if not others:
        return height / (1 - slow / rate), float(_ASSUMED_BUFFER)
    other_rate, other = others[0]
    slc = (height - other) / (slow / other_rate - slow / rate)
    slc = min(max(0.0, slc), height / (1 - slow / rate), float(space))
    return slc, max(_LEAST_BUFFER, height - slc * (1 - slow / rate))


def _synced_ns(runs: Runs, start: FlashDrive) -> float | None:
    """The time of a flush after a small write, beside the interface."""
    found = [
        one.sync_p50_ns for one in runs.of(DiskLoad("write", SLOT_KIB, 1, syncs=True)) if one.sync_p50_ns
    ]
    return max(1000.0, median(found) - start.interface - HOST_NS) if found else None
