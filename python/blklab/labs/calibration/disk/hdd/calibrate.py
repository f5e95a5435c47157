"""Calibrates a disk with an arm."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from blklab.errors import RequirementError
from blklab.labs.calibration.disk.document import (
    SCHEMA,
    DiskCalibration,
    Nearest,
    calibrated_load,
    circumstances,
    mean_log,
)
from blklab.labs.calibration.disk.drift import drift_of
from blklab.labs.calibration.disk.fit import TWO_SIDED
from blklab.labs.calibration.disk.ground import DiskMeasurement, Measure
from blklab.labs.calibration.disk.hdd.closed_form import Designed
from blklab.labs.calibration.disk.hdd.figure_list import NOT_COVERED, SEEK_PARTS, derived_of, figures_of
from blklab.labs.calibration.disk.hdd.figures import KIND, ArmDisk, Memory, SeekCurve
from blklab.labs.calibration.disk.hdd.loads import (
    HIT_KIB,
    SeekTurn,
    again,
    holdouts,
    in_order,
    jump,
    jumps,
    spread_load,
    turns,
)
from blklab.labs.calibration.disk.hdd.mechanics import (
    Mechanics,
    MechanicsEstimate,
    fitted,
    revolution,
    started,
)
from blklab.labs.calibration.disk.hdd.memory import (
    Count,
    WriteMemory,
    segment_sectors,
    segments,
    starvation,
    write_memory,
)
from blklab.labs.calibration.disk.loads import ARM_PROBES, REFERENCE, CalibrationLoad
from blklab.labs.calibration.disk.model import Model
from blklab.labs.calibration.disk.nearest import nearest_profile
from blklab.labs.calibration.disk.placed_loads import PlacedLoad
from blklab.labs.calibration.disk.runs import Runs
from blklab.spec.machines import Machine
from blklab.spec.plan import derive_seed

_ROUNDS = 4
_NEEDED_ROUNDS = 2
_JUMPS = 150
"""Commands of a load that jumps."""
_WRITE_JUMPS = (1 / 256, 1 / 16, 1 / 4, 5 / 8)
_IN_ORDER_US = 2_000_000
"""Some hundred reads: switches to another head, one in a hundred of tracks, are rarer than a percent."""
_AGAIN_US = 300_000
_STEPPED = 40
"""Commands of a load that steps."""
_TESTED = 1000
"""Commands of a load that tests the profile."""
_DEEP = 2000
"""Commands of a load with a deep queue, about."""
_DEEP_RUNS = 4
_DEPTHS = (24, 64)
_TEST_ROUNDS = 3
_TEST_SEEDS = range(41, 57)
_LEAST_PART = 0.9
"""Of the disk that must be within reach: the arm's longest ways are a part of its figures."""
_USUAL_SEEK = 1 / 3
"""The mean way between two places that are drawn, as a part of the disk."""
_FIRST_STARVATION_NS = 2_000_000_000
_BAD_MISFIT = 10.0
_PERCENTILE_RATIO = 0.9
"""Between the 5th and the 95th percentile."""


@dataclass(frozen=True)
class _Disk:
    """Everything that was found."""

    disk: ArmDisk
    turn: MechanicsEstimate
    mechanics: Mechanics
    places: Count
    ahead: Count | None
    writes: WriteMemory | None
    starvation: Count


def arm_calibrated(runs: Runs, *, seed: int, machine: Machine) -> DiskCalibration:
    """Calibrates a disk that was found to have an arm.

    Args:
        runs: What was measured up to now: the runs that look for an arm.
        seed: Of the order of measurements.
        machine: The cost table under which the profile will be used.

    Raises:
        RequirementError: if only a part of the disk may be used.
        BlklabError: if a load cannot run.
    """
    facts = runs.ground.facts
    space = facts.space_bytes
    if space < _LEAST_PART * facts.capacity_bytes:
        raise RequirementError(
            f"{runs.ground.target.target} has an arm, and calibration may use only a part of it",
            hint="give the block device itself (/dev/sdX): it is only read, and read everywhere",
        )
    runs.announce("the disk has an arm: measuring rotation, seeks and tracks")
    single_us = median(one.p50_ns for one in runs.of(ARM_PROBES[0])) / 1000
    model = Model(space, machine)

    def measure(load: CalibrationLoad, runtime_us: int) -> DiskMeasurement:
        model.runtimes_us[load.name] = runtime_us
        return runs.one(load, runtime_us)

    writes = facts.writable
    through = writes and not facts.queues.volatile_cache
    design = Designed(
        jumps=jumps(space),
        in_order=[in_order(part, space) for part in (0.0, 1.0)],
        again=[again(block_kib) for block_kib in HIT_KIB],
        write_jumps=[jump(part, space, readwrite="randwrite") for part in _WRITE_JUMPS] if through else (),
    )
    tests = holdouts(space, writes=writes)
    turned = turns(space)
    runs.planned = len(runs.made) + _ROUNDS * (len(design.loads) + 2 * len(turned) + 2) + 3 * len(tests) + 40
    _rounds(runs, measure, design, turned, single_us, seed)
    found = _found(runs, measure, design, turned, model, single_us, writes=writes)
    runs.announce("testing the profile on loads that were not fitted")
    lengths = {load.name: _test_us(load.depth, single_us) for load in tests}
    for number in range(_TEST_ROUNDS):
        for load in _shuffled(tests, seed, "test", number):
            measure(load, lengths[load.name])
    return _document(runs, found, design, tests, model, seed=seed, machine=machine)


def _test_us(depth: int, single_us: float) -> int:
    return round(max(400_000, _TESTED * single_us / (1 + math.log2(depth))))


def _rounds(
    runs: Runs,
    measure: Measure,
    design: Designed,
    turned: Sequence[SeekTurn],
    single_us: float,
    seed: int,
) -> None:
    """Every load of the mechanics once in each round."""
    lengths = {
        REFERENCE.name: round(_JUMPS * single_us),
        **{one.load.name: round(_JUMPS * single_us) for one in [*design.jumps, *design.write_jumps]},
        **{load.name: _IN_ORDER_US for load in design.in_order},
        **{load.name: _AGAIN_US for load in design.again},
        **{turn.direct.name: round(_STEPPED * single_us) for turn in turned},
        **{turn.paused.name: round(_STEPPED * (single_us + turn.pause_us)) for turn in turned},
    }
    loads: list[CalibrationLoad] = [
        *design.loads,
        *(load for turn in turned for load in (turn.direct, turn.paused)),
    ]
    runs.need(_NEEDED_ROUNDS * (len(loads) + 2))
    for number in range(_ROUNDS):
        if number >= _NEEDED_ROUNDS and runs.at_end:
            return
        order = _shuffled(loads, seed, "arm", number)
        middle = len(order) // 2
        for load in [REFERENCE, *order[:middle], REFERENCE, *order[middle:]]:
            measure(load, lengths[load.name])


def _shuffled(
    loads: Sequence[PlacedLoad] | Sequence[CalibrationLoad], seed: int, *path: str | int
) -> list[CalibrationLoad]:
    order = random.Random(derive_seed(seed, "calibration", *path))  # noqa: S311 - not for secrets
    shuffled: list[CalibrationLoad] = list(loads)
    order.shuffle(shuffled)
    return shuffled


def _found(
    runs: Runs,
    measure: Measure,
    design: Designed,
    turned: Sequence[SeekTurn],
    model: Model,
    single_us: float,
    *,
    writes: bool,
) -> _Disk:
    facts = runs.ground.facts
    space = facts.space_bytes
    by_name = {load.name: runs.of(load) for load in design.loads}
    about_ns = median(
        (one.p95_ns - (one.p05_ns or 0)) / _PERCENTILE_RATIO
        for each in design.jumps
        for one in by_name[each.load.name]
    )
    turn = revolution([(one.pause_us, runs.of(one.direct), runs.of(one.paused)) for one in turned], about_ns)
    turn = turn or MechanicsEstimate(about_ns, 0.02 * about_ns)
    cached = writes and facts.queues.volatile_cache
    start = ArmDisk(
        capacity_bytes=facts.capacity_bytes,
        queue_depth=facts.queues.depth,
        revolution_ns=turn.value,
        switch_ns=0.1 * turn.value,
        outer_sectors=1000,
        inner_sectors=500,
        curve=SeekCurve(turn.value / 5, 1.0, 2, turn.value / 2, 1.0),
        write_settle_ns=0.05 * turn.value if writes else 0.0,
        hit_ns=50_000,
        interface_rate=3e8,
        memory=Memory(
            read_ahead=True,
            segments=16,
            segment_sectors=1024,
            write_sectors=32_768 if cached else 0,
            write_extents=16,
        ),
        starvation_ns=_FIRST_STARVATION_NS,
        heads=1,
    )
    disk = started(design, by_name, start)
    runs.announce("measuring the disk's memory")
    ahead = None
    orderly_ns = median(one.p50_ns for load in design.in_order for one in by_name[load.name])
    reads_ahead = orderly_ns < disk.revolution_ns / 2
    places = segments(measure, disk, space_bytes=space, single_us=single_us)
    memory = replace(disk.memory, segments=places.value, read_ahead=reads_ahead and places.value > 0)
    if memory.read_ahead:
        ahead = segment_sectors(measure, disk, space_bytes=space)
        memory = replace(memory, segment_sectors=max(8, ahead.value))
    disk = replace(disk, memory=memory)
    mechanics = fitted(design, by_name, disk, model, list(SEEK_PARTS))
    disk = mechanics.disk
    written = None
    if cached:
        runs.announce("measuring what the disk's memory holds back of writes")
        _, low, high = mechanics.seeks_ns[_USUAL_SEEK]
        written = write_memory(
            measure,
            disk,
            model,
            space_bytes=space,
            single_us=single_us,
            seek_error_ns=(high - low) / 2 / TWO_SIDED,
        )
        disk = written.disk
    deep = []
    for depth in sorted({min(depth, facts.queues.depth) for depth in _DEPTHS}):
        load = spread_load("randread", 4, depth, space)
        length_us = round(_DEEP * single_us / (1 + math.log2(depth)))
        deep.append((load, [measure(load, length_us) for _ in range(_DEEP_RUNS)]))
    old = starvation(disk, deep, model)
    return _Disk(replace(disk, starvation_ns=old.value), turn, mechanics, places, ahead, written, old)


def _document(
    runs: Runs,
    found: _Disk,
    design: Designed,
    tests: Sequence[PlacedLoad],
    model: Model,
    *,
    seed: int,
    machine: Machine,
) -> DiskCalibration:
    ground = runs.ground
    # Waits of an arm scatter far more than rates of other disks, or, at chosen addresses, not at all.
    drift = drift_of(runs.of(REFERENCE))
    loads = [*((load, True) for load in design.loads), *((load, False) for load in tests)]
    predicted = model.measured(found.disk.device, [load for load, _ in loads], _TEST_SEEDS)
    return DiskCalibration(
        schema=SCHEMA,
        kind=KIND,
        **circumstances(runs, seed=seed, machine=machine, drift=drift),
        figures=figures_of(
            found.disk,
            found.turn,
            found.mechanics,
            found.places,
            found.ahead,
            found.writes,
            found.starvation,
            writable=ground.facts.writable,
        ),
        derived=derived_of(found.mechanics),
        model_error=found.mechanics.model_error,
        loads=[
            calibrated_load(load, runs.of(load), simulated, fitted=is_fitted)
            for (load, is_fitted), simulated in zip(loads, predicted, strict=True)
        ],
        nearest=_nearest(runs, tests, model),
        remarks=[*ground.facts.remarks, *_misfit_remarks(found.mechanics), *drift.remarks()],
        not_covered=NOT_COVERED,
    )


def _misfit_remarks(mechanics: Mechanics) -> list[str]:
    if mechanics.misfit < _BAD_MISFIT:
        return []
    return [
        (
            f"the designed loads miss the profile by {math.sqrt(mechanics.misfit):.1f} times their noise:"
            " it is another kind of disk, or other programs were busy"
        )
    ]


def _nearest(runs: Runs, tests: Sequence[PlacedLoad], model: Model) -> Nearest:
    rates = [mean_log([one.iops for one in runs.of(load)]) for load in tests]
    lengths = [model.runtimes_us[load.name] for load in tests]
    return nearest_profile(
        rates, lengths, lambda space: holdouts(space, writes=runs.ground.facts.writable), model
    )
