"""Calibrates a flash drive."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from blklab.execution.calibration.disk.document import (
    SCHEMA,
    DiskCalibration,
    Nearest,
    calibrated_load,
    circumstances,
    mean_log,
)
from blklab.execution.calibration.disk.drift import drift_of
from blklab.execution.calibration.disk.flash.figure_list import NOT_COVERED, figures_of
from blklab.execution.calibration.disk.flash.figures import KIND, FlashDrive, kib_ns_of, with_facts
from blklab.execution.calibration.disk.flash.filling import (
    Point,
    Stages,
    chosen_s,
    last_line,
    lengths_s,
    stages_of,
)
from blklab.execution.calibration.disk.flash.fit import FlashFit, Observed, fitted, observed
from blklab.execution.calibration.disk.flash.loads import (
    KIB,
    LEVELS,
    SLOT_KIB,
    Row,
    filling,
    levels,
    other_rows,
    single_rows,
    single_write,
    sized,
)
from blklab.execution.calibration.disk.flash.structure import Structure, stripe_bytes, structure_of
from blklab.execution.calibration.disk.ground import Measurement
from blklab.execution.calibration.disk.limits import Limits, buffer_load
from blklab.execution.calibration.disk.loads import BUFFERED_HOLDOUTS, HOLDOUTS, REFERENCE, DiskLoad, Load
from blklab.execution.calibration.disk.model import Model
from blklab.execution.calibration.disk.nearest import nearest_profile
from blklab.execution.calibration.disk.runs import Runs
from blklab.spec.machines import Machine
from blklab.spec.plan import derive_seed

_ROUNDS = 3
_NEEDED_ROUNDS = 2
_FILL_ROUNDS = 2
_TEST_US = 200_000
_LONG_TEST_US = 8_000_000
_TEST_SEEDS = range(21, 25)
_LONG_TEST_SEEDS = range(21, 23)
_MOST_REST_S = 8.0
_MOST_FILL_S = 16.0
_HOST_NS = 4000
"""Of a latency, about what this machine itself computes."""
_BAD_MODEL = 0.05
"""Scatter beyond the measurements' with which the kind does not describe the disk."""
_APART = 1.15
"""Times by which single writes must outrun the slow cells to tell the buffer from the fast ones."""
_SLOW_FILL_KIB = (4, 8, 16, 32, 64, 128, 256, 512)
_MOST_SLOW_FILL_S = 8.0
_MOST_SLOW_FILLS = 60_000
"""I/Os of such a load: more would take long to simulate."""
_LEAST_PART = 0.1
_LEAST_SLC = 0.02
"""Of what is written beyond the slow rate: a smaller cache of fast cells is none."""
_BEYOND = (1.3, 1.8)
"""Times after which writes have filled everything."""


@dataclass(frozen=True)
class _Fills:
    """Long writes: their stages, if there are any, and the loads to fit to."""

    stages: Stages | None
    rows: Sequence[Row]
    seen_bytes: float
    """Written at most without a pause."""


def flash_calibrated(
    runs: Runs, limits: Limits, *, seed: int, machine: Machine
) -> DiskCalibration | None:
    """Calibrates a disk whose addresses tell its dies apart.

    Args:
        runs: What was measured up to now.
        limits: Of writes; there must be none of reads.
        seed: Of the order of measurements.
        machine: The cost table under which the profile will be used.

    Returns:
        None if addresses make no difference, or a drive of the kind would do something else.

    Raises:
        BlklabError: if a load cannot run.
    """
    facts = runs.ground.facts
    space = facts.space_bytes
    runs.announce("looking for dies")
    stripe = stripe_bytes(runs.one, space)
    if stripe is None or not facts.writable:
        return None
    runs.announce("reads that are far apart wait for each other: measuring dies, channels and cells")
    singles = single_rows(stripe, space, facts.queues.max_sectors_kb)
    others = other_rows(space, flushes=facts.queues.volatile_cache)
    model = Model(space, machine)
    tests = [*HOLDOUTS, *BUFFERED_HOLDOUTS]
    begun, planned = len(runs.made), runs.planned
    runs.planned = begun + _ROUNDS * (len(singles) + len(others) + len(tests) + 2) + 40
    rows = [*singles, *others]
    for number in range(_ROUNDS):
        if number >= _NEEDED_ROUNDS and runs.at_end:
            break
        _round(runs, rows, seed, number)
    start = _start(runs, stripe)
    runs.announce("measuring what the drive holds of long writes")
    fills = _fills(runs, start)
    start = _with_fills(runs, start, fills)
    runs.announce("fitting the profile of a flash drive")
    found = [observed(row, runs.of(row.load)) for row in [*rows, *fills.rows]]
    fit = fitted(found, _names(start, fills, flushes=facts.queues.volatile_cache), start, model)
    if fit.model_error > _BAD_MODEL:
        runs.announce(f"a flash drive would do otherwise, by {100 * fit.model_error:.0f} %")
        runs.planned = planned + len(runs.made) - begun
        return None
    if fills.stages is None:
        tests = [*HOLDOUTS]
    runs.announce("testing the profile on loads that were not fitted")
    for load in tests:
        model.runtimes_us[load.name] = _LONG_TEST_US if load in BUFFERED_HOLDOUTS else _TEST_US
    for number in range(_ROUNDS):
        for load in [REFERENCE, *_shuffled(tests, seed, "flash test", number)]:
            runs.one(load, model.runtimes_us.get(load.name, _TEST_US))
    return _document(runs, fit, found, tests, model, limits, seed=seed, machine=machine)


def _round(runs: Runs, rows: Sequence[Row], seed: int, number: int) -> None:
    """Every load once, in an order that is drawn."""
    by_name = {row.load.name: row for row in rows}
    order = _shuffled([row.load for row in by_name.values()], seed, "flash", number)
    for position, load in enumerate(order):
        if position == len(order) // 2:
            runs.one(REFERENCE, _TEST_US)
        row = by_name[load.name]
        if not row.load.reads_only:
            _rest(runs, row.runtime_us)
        runs.one(load, row.runtime_us)


def _rest(runs: Runs, runtime_us: int) -> None:
    if not (runs.ground.facts.rested or runs.next_is_saved):
        time.sleep(min(runtime_us / 1e6, _MOST_REST_S))


def _shuffled(loads: Sequence[Load], seed: int, *path: str | int) -> list[Load]:
    order = random.Random(derive_seed(seed, "calibration", *path))  # noqa: S311 - not for secrets
    shuffled = list(loads)
    order.shuffle(shuffled)
    return shuffled


def _mean_ns(runs: Runs, load: Load) -> float:
    return median(one.mean_ns or one.p50_ns for one in runs.of(load))


def _start(runs: Runs, stripe: int) -> FlashDrive:
    """Closed forms of single reads and writes."""
    facts = runs.ground.facts
    loads = sized(stripe, facts.space_bytes, facts.queues.max_sectors_kb)
    structure: Structure = structure_of(
        stripe, [load.block_kib for load in loads], [_mean_ns(runs, load) for load in loads]
    )
    writes = {kib: _mean_ns(runs, single_write(kib, facts.space_bytes)) for kib in (4, 64)}
    link_write = max(1.0, (writes[64] - writes[4]) / (64 - SLOT_KIB))
    outside_ns = max(0.0, writes[4] - SLOT_KIB * link_write - _HOST_NS)
    beside_ns = outside_ns + _HOST_NS + SLOT_KIB * (structure.channel + structure.link)
    cells = [
        max(1000.0, _mean_ns(runs, load) - beside_ns) for load in levels(stripe, facts.space_bytes)[:LEVELS]
    ]
    return replace(
        with_facts(facts),
        dies=structure.dies,
        unit_bytes=structure.unit_bytes,
        channels=structure.channels,
        read_low=cells[0],
        read_middle=cells[1],
        read_high=cells[2],
        channel=max(1.0, structure.channel),
        link_read=max(1.0, structure.link),
        link_write=link_write,
        command=0.0,
        interface=outside_ns,
    )


def _fills(runs: Runs, start: FlashDrive) -> _Fills:
    """Long writes that show the stages; none if writes never slow down."""
    facts = runs.ground.facts
    space = facts.space_bytes
    usual = buffer_load(
        queue_depth=facts.queues.depth, max_sectors_kb=facts.queues.max_sectors_kb, space_bytes=space
    )

    def points(measured: Sequence[Measurement], block_kib: int) -> list[Point]:
        return [Point(one.ios / one.iops, one.ios * block_kib * KIB) for one in measured]

    def fill(block_kib: int, depth: int, length_s: float) -> Row:
        runtime_us = round(1e6 * min(length_s, _MOST_FILL_S))
        load = filling(block_kib, depth, runtime_us, space)
        return Row(load, "iops", runtime_us)

    def measure(row: Row) -> None:
        _rest(runs, row.runtime_us)
        runs.one(row.load, row.runtime_us)

    seen = points(runs.of(usual), usual.block_kib)
    seen_bytes = max(point.written for point in seen)
    line = last_line(seen)
    if line is None:
        return _Fills(None, (), seen_bytes)
    first = [fill(usual.block_kib, usual.depth, length_s) for length_s in lengths_s(seen, line)]
    for row in first:
        measure(row)
    stages = stages_of(
        [point for row in first for point in points(runs.of(row.load), usual.block_kib)],
    )
    rows = [fill(usual.block_kib, usual.depth, length_s) for length_s in chosen_s(stages)]
    if stages.fast_rate is None:
        rows += [fill(block_kib, 1, length_s) for block_kib, length_s in _slow_fills(start, stages)]
    rows = list({row.load.name: row for row in rows}.values())
    for _ in range(_FILL_ROUNDS):
        for row in rows:
            measure(row)
    return _Fills(stages, rows, seen_bytes)


def _slow_fills(start: FlashDrive, stages: Stages) -> list[tuple[int, float]]:
    """Single writes slower than the link: what fast cells take depends on the rate, a buffer does not.

    The slower they are, the more it differs, and the longer it takes.
    """
    for block_kib in _SLOW_FILL_KIB:
        rate = _single_rate(start, block_kib)
        if rate < _APART * stages.slow_rate:
            continue
        # With a slower rate less lies beyond the last line.
        part = (1 - stages.slow_rate / rate) / (1 - stages.slow_rate / stages.first_rate)
        most_s = max(part, _LEAST_PART) * stages.height_bytes / (rate - stages.slow_rate)
        longest_s = _BEYOND[-1] * most_s
        if longest_s < _MOST_SLOW_FILL_S and longest_s * rate < _MOST_SLOW_FILLS * block_kib * KIB:
            return [(block_kib, beyond * most_s) for beyond in _BEYOND]
    return []


def _single_rate(start: FlashDrive, block_kib: int) -> float:
    """Bytes a second of single writes."""
    outside_ns = start.command + start.interface + _HOST_NS
    return 1e9 * KIB * block_kib / (outside_ns + block_kib * start.link_write)


def _with_fills(runs: Runs, start: FlashDrive, fills: _Fills) -> FlashDrive:
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
    fast = min(0.9 * start.stripe_bytes / stages.first_rate * 1e9, synced_ns or start.slc_program)
    heights = [(stages.first_rate, stages.height_bytes)]
    slow = [row for row in fills.rows if row.load.depth == 1]
    for row in slow[-1:]:
        one = runs.of(row.load)[0]
        time_s, written = one.ios / one.iops, one.ios * row.load.block_kib * KIB
        rate = _single_rate(start, row.load.block_kib)
        heights.append((rate, written - stages.slow_rate * time_s))
    slc, buffer = _apart(heights, stages.slow_rate, facts.space_bytes)
    if slc < _LEAST_SLC * stages.height_bytes:
        slc = 0.0
    flush = max(0.0, (synced_ns or 0.0) - (fast if slc else start.program))
    return replace(start, slc_program=fast, slc_bytes=slc, buffer_bytes=buffer, flush=flush)


def _apart(heights: Sequence[tuple[float, float]], slow: float, space: int) -> tuple[float, float]:
    """Fast cells and buffer, from what is written beyond the slow rate at one or two faster rates."""
    (rate, height), *others = heights
    if not others:
        return height / (1 - slow / rate), float(32 << 20)
    other_rate, other = others[0]
    slc = (height - other) / (slow / other_rate - slow / rate)
    slc = min(max(0.0, slc), height / (1 - slow / rate), float(space))
    return slc, max(1.0 * (1 << 20), height - slc * (1 - slow / rate))


def _synced_ns(runs: Runs, start: FlashDrive) -> float | None:
    """The time of a flush after a small write, beside the interface."""
    found = [one.sync_p50_ns for one in runs.of(DiskLoad("write", SLOT_KIB, 1, syncs=True)) if one.sync_p50_ns]
    return max(1000.0, median(found) - start.interface - _HOST_NS) if found else None


def _names(start: FlashDrive, fills: _Fills, *, flushes: bool) -> list[str]:
    """The figures that the loads can tell."""
    names = ["read_low", "read_middle", "read_high", "channel", "link_read", "link_write"]
    names += ["command", "interface", "suspend"]
    if fills.stages is None:
        names.append("slc_program")
    else:
        names += ["program", "buffer_bytes"]
        if start.slc_bytes > 0:
            names += ["slc_program", "slc_bytes"]
    return [*names, *(["flush"] if flushes else [])]


def _document(
    runs: Runs,
    fit: FlashFit,
    found: Sequence[Observed],
    tests: Sequence[DiskLoad],
    model: Model,
    limits: Limits,
    *,
    seed: int,
    machine: Machine,
) -> DiskCalibration:
    drive = fit.drive.device()
    loads = {one.row.load.name: one.row.load for one in found}
    drift = drift_of(runs.of(REFERENCE))
    fitted_loads = [
        calibrated_load(load, runs.of(load), model.measured(drive, [load], _LONG_TEST_SEEDS)[0], fitted=True)
        for load in loads.values()
    ]
    tested = [
        calibrated_load(
            load,
            runs.of(load),
            model.measured(drive, [load], _LONG_TEST_SEEDS if load in BUFFERED_HOLDOUTS else _TEST_SEEDS)[0],
            fitted=False,
        )
        for load in tests
    ]
    return DiskCalibration(
        schema=SCHEMA,
        kind=KIND,
        **circumstances(runs, seed=seed, machine=machine, drift=drift),
        figures=figures_of(fit, limits.no_write_buffer),
        model_error=fit.model_error,
        loads=[*fitted_loads, *tested],
        nearest=_nearest(runs, tests, model),
        remarks=[*runs.ground.facts.remarks, *drift.remarks()],
        not_covered=NOT_COVERED,
    )


def _nearest(runs: Runs, tests: Sequence[DiskLoad], model: Model) -> Nearest:
    rates = [mean_log(one.iops for one in runs.of(load)) for load in tests]
    lengths = [model.runtimes_us[load.name] for load in tests]
    return nearest_profile(rates, lengths, lambda _: tests, model, most_quick_us=_LONG_TEST_US)
