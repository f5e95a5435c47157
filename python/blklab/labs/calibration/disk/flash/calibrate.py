"""Calibrates a flash drive."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median

from blklab.labs.calibration.disk.document import (
    SCHEMA,
    DiskCalibration,
    Figure,
    Nearest,
    calibrated_load,
    circumstances,
    mean_log,
    mixed_errors_of,
    mixed_load,
)
from blklab.labs.calibration.disk.drift import drift_of
from blklab.labs.calibration.disk.flash.collection import Collection, collected
from blklab.labs.calibration.disk.flash.commands import ROUNDS as COMMAND_ROUNDS
from blklab.labs.calibration.disk.flash.commands import command_loads, measure_commands, with_fetch
from blklab.labs.calibration.disk.flash.figure_list import NO_COLLECTION, NOT_COVERED, figures_of
from blklab.labs.calibration.disk.flash.figures import KIND, FlashDrive, with_facts
from blklab.labs.calibration.disk.flash.fit import fitted, roughly_fitted
from blklab.labs.calibration.disk.flash.front_end import (
    Contention,
    FrontEnd,
    front_end_of,
    refined,
    with_intervals,
)
from blklab.labs.calibration.disk.flash.loads import (
    LEVELS,
    SLOT_KIB,
    LoadNumber,
    levels,
    other_rows,
    single_rows,
    single_write,
    sized,
)
from blklab.labs.calibration.disk.flash.long_writes import (
    HOST_NS,
    LongWrites,
    divisions,
    long_writes,
    with_long_writes,
)
from blklab.labs.calibration.disk.flash.refilling import refilled, with_refill
from blklab.labs.calibration.disk.flash.search import Observed, observed
from blklab.labs.calibration.disk.flash.structure import stripe_bytes, structure_of
from blklab.labs.calibration.disk.limits import Limits
from blklab.labs.calibration.disk.loads import (
    BUFFERED_HOLDOUTS,
    HOLDOUTS,
    REFERENCE,
    CalibrationLoad,
    DiskLoad,
)
from blklab.labs.calibration.disk.model import Model
from blklab.labs.calibration.disk.nearest import nearest_profile
from blklab.labs.calibration.disk.reads_beside_writes import RUNTIME_US as MIXED_US
from blklab.labs.calibration.disk.reads_beside_writes import (
    ReadsBesideWrites,
    contention_to_fit,
    contention_to_test,
)
from blklab.labs.calibration.disk.runs import Runs
from blklab.spec.machines import Machine
from blklab.spec.plan import derive_seed

_ROUNDS = 3
_NEEDED_ROUNDS = 2
_MIXED_ROUNDS = 2
_LONG_WRITES = 50
"""At most, about."""
_TEST_US = 200_000
_LONG_TEST_US = 8_000_000
_TEST_SEEDS = range(21, 25)
_LONG_TEST_SEEDS = range(21, 23)
_BAD_MODEL = 0.05
"""Scatter beyond the measurements' with which the kind does not describe the disk."""


def flash_calibrated(runs: Runs, limits: Limits, *, seed: int, machine: Machine) -> DiskCalibration | None:
    """Calibrates a disk whose addresses tell its dies apart.

    Args:
        runs: What was measured up to now.
        limits: Of writes; there must be none of reads.
        seed: Of the order of measurements.
        machine: The cost table under which the profile will be used.

    Returns:
        None if it can only be read, addresses make no difference, or a drive of the kind would do otherwise.

    Raises:
        BlklabError: if a load cannot run.
    """
    facts = runs.ground.facts
    space = facts.space_bytes
    if not facts.writable:
        return None
    begun, planned = len(runs.made), runs.planned
    runs.announce("looking for dies")
    stripe = stripe_bytes(runs.one, space)
    if stripe is None:
        return None
    runs.announce("reads that are far apart wait for each other: measuring dies, channels and cells")
    singles = single_rows(stripe, space, facts.queues.max_sectors_kb)
    others = other_rows(space, flushes=facts.queues.volatile_cache)
    model = Model(space, machine)
    tests = [*HOLDOUTS, *BUFFERED_HOLDOUTS]
    runs.planned = len(runs.made) + _ROUNDS * (len(singles) + len(others) + len(tests) + 2) + _LONG_WRITES
    runs.planned += _MIXED_ROUNDS * len(_mixed_loads(runs))
    runs.planned += COMMAND_ROUNDS * len(command_loads(facts.queues.depth))
    rows = [*singles, *others]
    _rounds(runs, rows, seed)
    start = _start(runs, stripe)
    runs.announce("measuring what the drive holds of long writes")
    fills = long_writes(runs, start)
    start = with_long_writes(runs, start, fills)
    refill = refilled(runs, start, fills.stages) if fills.stages and start.slc_bytes else None
    if fills.stages and refill:
        start = with_refill(start, fills.stages, refill)
    contention = _contention(runs, model, seed)
    runs.announce("fitting the profile of a flash drive")
    long = [*fills.rows, *([refill.row] if refill else [])]
    found = [observed(row, runs.of(row.load)) for row in [*rows, *long]]
    names = _names(start, fills, flushes=facts.queues.volatile_cache)

    def near(drive: FlashDrive) -> FlashDrive:
        return roughly_fitted(found, names, drive, model, fills.known)

    front_end = _front_end(contention, start, near)
    start = front_end.of(start)
    fit = fitted(found, names, start, model, fills.known, divisions(start, fills))
    if fit.model_error > _BAD_MODEL:
        runs.announce(f"a flash drive would do otherwise, by {100 * fit.model_error:.0f} %")
        runs.planned = planned + len(runs.made) - begun
        return None
    if front_end.exists:
        # With all figures fitted.
        front_end = refined(contention, fit.drive, front_end)
    fetch = with_fetch(runs, front_end.of(fit.drive), model)
    fit = replace(fit, drive=fetch.drive)
    of_front_end = [*with_intervals(contention, fit.drive, front_end).figures(), *fetch.figures]
    if fills.stages is None:
        tests = [*HOLDOUTS]
    runs.announce("testing the profile on loads that were not fitted")
    for load in tests:
        model.runtimes_us[load.name] = _LONG_TEST_US if load in BUFFERED_HOLDOUTS else _TEST_US
    for number in range(_ROUNDS):
        for tested in [REFERENCE, *_shuffled(tests, seed, "flash test", number)]:
            runs.one(tested, model.runtimes_us.get(tested.name, _TEST_US))
    # Last, since data lie anywhere then.
    collection = collected(runs, fit, found, model, slows_down=fills.stages is not None)
    return _document(runs, collection, of_front_end, found, tests, model, limits, seed=seed, machine=machine)


def _rounds(runs: Runs, rows: Sequence[LoadNumber], seed: int) -> None:
    """Rounds within the budget, and those that are made in any case."""
    runs.need(_NEEDED_ROUNDS * (len({row.load.name for row in rows}) + 1))
    for number in range(_ROUNDS):
        if number >= _NEEDED_ROUNDS and runs.at_end:
            break
        _round(runs, rows, seed, number)


def _round(runs: Runs, rows: Sequence[LoadNumber], seed: int, number: int) -> None:
    """Every load once, in an order that is drawn."""
    by_name = {row.load.name: row for row in rows}
    order = _shuffled([row.load for row in by_name.values()], seed, "flash", number)
    for position, load in enumerate(order):
        if position == len(order) // 2:
            runs.one(REFERENCE, _TEST_US)
        row = by_name[load.name]
        measure = runs.one if row.load.reads_only else runs.rested
        measure(load, row.runtime_us)


def _contention(runs: Runs, model: Model, seed: int) -> Contention:
    """Measures reads beside writes, those that only test among them."""
    runs.announce("measuring reads beside writes")
    loads = _mixed_loads(runs)
    for number in range(_MIXED_ROUNDS):
        for load in _shuffled([*loads], seed, "mixed", number):
            runs.rested(load, MIXED_US)
    measure_commands(runs)
    return Contention({load: runs.of(load) for load, is_fitted in loads.items() if is_fitted}, model)


def _front_end(
    contention: Contention, start: FlashDrive, near: Callable[[FlashDrive], FlashDrive]
) -> FrontEnd:
    """The front end, as far as figures that are fitted in a few steps tell it."""
    front_end = front_end_of(contention, near(start))
    if not front_end.exists:
        return front_end
    # Slots that were not known of have distorted the other figures, and these the slots.
    return refined(contention, near(front_end.of(start)), front_end)


def _mixed_loads(runs: Runs) -> dict[ReadsBesideWrites, bool]:
    """Reads beside writes, and whether a front end is fitted to each."""
    depth = runs.ground.facts.queues.depth
    return dict.fromkeys(contention_to_fit(depth), True) | dict.fromkeys(contention_to_test(depth), False)


def _shuffled(loads: Sequence[CalibrationLoad], seed: int, *path: str | int) -> list[CalibrationLoad]:
    order = random.Random(derive_seed(seed, "calibration", *path))  # noqa: S311 - not for secrets
    shuffled = list(loads)
    order.shuffle(shuffled)
    return shuffled


def _mean_ns(runs: Runs, load: CalibrationLoad) -> float:
    return median(one.mean_ns or one.p50_ns for one in runs.of(load))


def _start(runs: Runs, stripe: int) -> FlashDrive:
    """Closed forms of single reads and writes."""
    facts = runs.ground.facts
    loads = sized(stripe, facts.space_bytes, facts.queues.max_sectors_kb)
    structure = structure_of(
        stripe, [load.block_kib for load in loads], [_mean_ns(runs, load) for load in loads]
    )
    writes = {kib: _mean_ns(runs, single_write(kib, facts.space_bytes)) for kib in (4, 64)}
    link_write = max(1.0, (writes[64] - writes[4]) / (64 - SLOT_KIB))
    outside_ns = max(0.0, writes[4] - SLOT_KIB * link_write - HOST_NS)
    beside_ns = outside_ns + HOST_NS + SLOT_KIB * (structure.channel + structure.link)
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


def _names(start: FlashDrive, fills: LongWrites, *, flushes: bool) -> list[str]:
    """The figures that the loads can tell."""
    names = ["read_low", "read_middle", "read_high", "channel", "link_read", "link_write"]
    names += ["command", "interface", "suspend"]
    if fills.stages is None:
        names.append("slc_program")
    else:
        names += ["program", "buffer_bytes"]
        if start.slc_bytes > 0:
            names += ["slc_program", "slc_bytes", "fold_rate"]
    return [*names, *(["flush"] if flushes else [])]


def _document(
    runs: Runs,
    collection: Collection,
    front_end: Sequence[Figure],
    found: Sequence[Observed],
    tests: Sequence[DiskLoad],
    model: Model,
    limits: Limits,
    *,
    seed: int,
    machine: Machine,
) -> DiskCalibration:
    fit, drive = collection.fit, collection.drive.device()
    loads = {one.row.load.name: one.row.load for one in [*found, *collection.rows]}
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
    mixed = []
    for load, is_fitted in _mixed_loads(runs).items():
        model.runtimes_us[load.name] = MIXED_US
        simulated = model.measured(drive, [load], _TEST_SEEDS)[0]
        mixed.append(mixed_load(load, runs.of(load), simulated, fitted=is_fitted))
    return DiskCalibration(
        schema=SCHEMA,
        kind=KIND,
        **circumstances(runs, seed=seed, machine=machine, drift=drift),
        figures=figures_of(fit, [*collection.figures, *front_end], limits.no_write_buffer),
        derived=[*collection.derived],
        model_error=fit.model_error,
        loads=[*fitted_loads, *tested],
        mixed_loads=mixed,
        mixed_errors=mixed_errors_of(mixed),
        nearest=_nearest(runs, tests, model),
        remarks=[*runs.ground.facts.remarks, *drift.remarks()],
        not_covered=NOT_COVERED if collection.seen else NO_COLLECTION,
    )


def _nearest(runs: Runs, tests: Sequence[DiskLoad], model: Model) -> Nearest:
    rates = [mean_log(one.iops for one in runs.of(load)) for load in tests]
    lengths = [model.runtimes_us[load.name] for load in tests]
    return nearest_profile(rates, lengths, lambda _: tests, model, most_quick_us=_LONG_TEST_US)
