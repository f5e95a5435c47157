"""Finds what the disk's memory does: segments for reading, reading ahead, and writes that it holds back.

The counts are whole, and what they change is a step, so they are searched by halving rather than fitted: by
measurements where one tells on which side the disk is, by simulations where a rate depends on the count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from blklab.labs.calibration.disk.fit import TWO_SIDED
from blklab.labs.calibration.disk.ground import DiskMeasurement, Measure
from blklab.labs.calibration.disk.hdd.figures import SECTOR_BYTES, ArmDisk
from blklab.labs.calibration.disk.hdd.loads import ahead, burst, in_turn, spread_load
from blklab.labs.calibration.disk.model import Model
from blklab.labs.calibration.disk.placed_loads import PlacedLoad

_QUICK = 1 / 6
"""Of a revolution: what takes less did not need the arm."""
_HIT_FACTOR = 2
_HOST_NS = 15_000
_MOST_PLACES = 512
_MOST_AHEAD_KIB = 8192
_MOST_EXTENTS = 512
_SLOWED = 1.5
_MOST_BURST_BYTES = 256 << 20
_BURST_KIB = 256
_BURSTS = 5
_SEEDS = range(31, 39)
_CERTAIN = TWO_SIDED**2
_STARVATION_NS = tuple(round(1e8 * 10 ** (step / 12)) for step in range(25))
"""From 0.1 to 10 s, each a fifth longer than the one before."""
_LEAST_US = 250_000
_LEAST_TAIL_ERROR = 0.02
"""Of the slowest commands' times: all other figures of the disk have their errors too."""


@dataclass(frozen=True)
class Count:
    """A number with the numbers that the loads do not rule out."""

    value: int
    low: int | None
    high: int | None
    """None: any larger would do as well."""
    how: str = "counted"


def _is_quick(found_ns: float, disk: ArmDisk) -> bool:
    """Whether a command was served without the arm."""
    return found_ns < _QUICK * disk.revolution_ns


def _is_hit(found_ns: float, disk: ArmDisk) -> bool:
    """Whether a read came from the memory; places that follow each other may be quick with the arm too."""
    return found_ns < _HIT_FACTOR * (disk.hit_ns + _HOST_NS)


def segments(measure: Measure, disk: ArmDisk, *, space_bytes: int, single_us: float) -> Count:
    """How many separate places the memory holds."""

    def held(places: int) -> bool:
        found = measure(in_turn(places, space_bytes, single_us), _LEAST_US)
        return _is_hit(found.p50_ns, disk)

    low, high = _bracket(held, 1, _MOST_PLACES)
    if high is None:
        return Count(low, low, None)
    return Count(low, low, high - 1)


def segment_sectors(measure: Measure, disk: ArmDisk, *, space_bytes: int) -> Count:
    """How far the disk reads on when nothing else is to be done."""
    rate = disk.outer_sectors * SECTOR_BYTES * 1e9 / (disk.revolution_ns + disk.switch_ns)

    def reached(blocks: int) -> bool:
        step_kib = 4 * blocks
        # After a pause of one length the next place may be under the heads by chance, hardly after two.
        return all(is_reached(step_kib, pause_us) for pause_us in pauses_us(step_kib))

    def pauses_us(step_kib: int) -> list[int]:
        least_us = 1e6 * (1.5 * 1024 * step_kib / rate) + 2e-3 * disk.revolution_ns
        return [round(factor * least_us) for factor in (1, 1.37)]

    def is_reached(step_kib: int, pause_us: int) -> bool:
        load = ahead(step_kib, space_bytes, pause_us)
        found = measure(load, max(_LEAST_US, 16 * (pause_us + round(disk.revolution_ns / 1000))))
        return _is_hit(found.min_ns or math.inf, disk)

    low, high = _bracket(reached, 1, _MOST_AHEAD_KIB // 4)
    per_block = 4096 // SECTOR_BYTES
    if high is None:
        return Count(low * per_block, low * per_block, None)
    return Count(low * per_block, low * per_block, high * per_block - 1)


def _bracket(holds: Callable[[int], bool], least: int, most: int) -> tuple[int, int | None]:
    """The largest number that holds and the smallest that does not; 0 if not even `least` does."""
    low, high = 0, least
    while holds(high):
        low = high
        if high >= most:
            return low, None
        high = min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


@dataclass(frozen=True)
class WriteMemory:
    """Findings about writes."""

    disk: ArmDisk
    extents: Count
    sectors: Count
    settle_ns: tuple[float, float, float]
    """The figure and its interval."""


def write_memory(
    measure: Measure,
    disk: ArmDisk,
    model: Model,
    *,
    space_bytes: int,
    single_us: float,
    seek_error_ns: float,
) -> WriteMemory:
    """Finds how much the memory holds of writes, and how long the arm settles before it writes.

    Bursts of small writes show how many pieces it tells apart, bursts of large ones in order how much it
    takes, and a steady stream of small ones how long the arm needs for each, of which the seek is known with
    an error.
    """
    small = _small_bursts(measure, disk, space_bytes=space_bytes, single_us=single_us)
    streams = [spread_load("randwrite", 4, depth, space_bytes, part=0.7, at=0.1) for depth in (1, 4)]
    steady = [(load, [measure(load, round(400 * single_us)) for _ in range(3)]) for load in streams]
    found = disk
    settle = (disk.write_settle_ns, 0.0, math.inf)
    extents = Count(disk.memory.write_extents, 1, None)
    for _ in range(2):
        extents = _likely(
            partial(_with_extents, found),
            small,
            model,
            _whole_grid(1, 4 * _MOST_EXTENTS),
        )
        found = _with_extents(found, extents.value)
        settle = _settle(found, steady, model, seek_error_ns)
        found = replace(found, write_settle_ns=settle[0])
    large = _large_bursts(measure, found, space_bytes=space_bytes)
    if not large:
        # The medium is as quick as the interface, so the memory never fills with writes in order.
        most = extents.value * found.memory.segment_sectors
        sectors = Count(most, None, None, how="not identified: the memory never filled")
        return WriteMemory(_with_sectors(found, most), extents, sectors, settle)
    grid = sorted({8 * round(2**exponent / 8) for exponent in np.arange(9, 21.01, 0.125)})
    sectors = _likely(partial(_with_sectors, found), large, model, grid)
    found = _with_sectors(found, sectors.value)
    return WriteMemory(found, extents, sectors, settle)


def _with_extents(disk: ArmDisk, count: int) -> ArmDisk:
    return replace(disk, memory=replace(disk.memory, write_extents=count))


def _with_sectors(disk: ArmDisk, count: int) -> ArmDisk:
    return replace(disk, memory=replace(disk.memory, write_sectors=count))


Measured = list[tuple[PlacedLoad, list[DiskMeasurement]]]


def _small_bursts(measure: Measure, disk: ArmDisk, *, space_bytes: int, single_us: float) -> Measured:
    found: Measured = []
    count = 8
    while True:
        pause_us = round(1.2 * count * single_us) + 100_000
        load = burst(block_kib=4, count=count, ordered=False, space_bytes=space_bytes, pause_us=pause_us)
        runtime_us = _BURSTS * (pause_us + round(count * single_us / 2))
        found.append((load, [measure(load, runtime_us)]))
        full = not _is_quick((found[-1][1][0].mean_ns or 0), disk)
        if full or count >= _MOST_EXTENTS:
            return found[-3:]
        count *= 2


def _large_bursts(measure: Measure, disk: ArmDisk, *, space_bytes: int) -> Measured:
    """Bursts up to a size that the memory does not take at once; none if it takes all."""
    found: Measured = []
    rate = disk.outer_sectors * SECTOR_BYTES * 1e9 / (disk.revolution_ns + disk.switch_ns)
    count = 8
    quickest = math.inf
    while True:
        block_bytes = _BURST_KIB * 1024
        empties_us = 1e6 * count * block_bytes / rate
        pause_us = round(1.3 * empties_us) + 200_000
        load = burst(
            block_kib=_BURST_KIB, count=count, ordered=True, space_bytes=space_bytes, pause_us=pause_us
        )
        found.append((load, [measure(load, round(_BURSTS * (pause_us + empties_us)))]))
        mean = found[-1][1][0].mean_ns or 0
        quickest = min(quickest, mean)
        if mean > _SLOWED * quickest:
            return found[-3:]
        if count * block_bytes >= _MOST_BURST_BYTES:
            return []
        count *= 2


def _likely(
    with_count: Callable[[int], ArmDisk], measured: Measured, model: Model, grid: Sequence[int]
) -> Count:
    """The count with which the simulator gives the mean times that were measured, and those as likely."""

    def misfit(count: int) -> float:
        loads = [load for load, _ in measured]
        simulated = model.measured(with_count(count).device, loads, _SEEDS)
        total = 0.0
        for (_, runs), predicted in zip(measured, simulated, strict=True):
            logs = np.log([one.mean_ns or 1 for one in predicted])
            # A simulation differs from a measurement by both their chances.
            error = math.hypot(
                float(np.std(logs, ddof=1)) * math.sqrt(1 / len(runs) + 1 / len(predicted)), 0.004
            )
            found = float(np.mean(np.log([one.mean_ns or 1 for one in runs])))
            total += ((found - float(np.mean(logs))) / error) ** 2
        return total

    costs = {}
    indices = list(range(0, len(grid), 4))
    for _ in range(3):
        for index in indices:
            if index not in costs:
                costs[index] = misfit(grid[index])
        best = min(costs, key=costs.__getitem__)
        close = [index for index in costs if costs[index] - costs[best] <= 4 * _CERTAIN]
        indices = [
            near
            for index in {best, min(close), max(close)}
            for near in range(index - 3, index + 4)
            if 0 <= near < len(grid)
        ]
    best = min(costs, key=costs.__getitem__)
    # Simulated rates scatter, so the neighbours count as likely too.
    worst = costs[best] + _CERTAIN * max(1.0, costs[best] / max(1, len(measured) - 1))
    likely = [index for index in costs if costs[index] <= worst]
    low, high = max(0, min(likely) - 1), max(likely) + 1
    return Count(
        grid[best],
        grid[low],
        grid[high] if high < len(grid) - 1 else None,
        how="fitted",
    )


def _whole_grid(least: int, most: int) -> list[int]:
    """All small numbers, then steps of some two percent."""
    found = [least]
    while found[-1] < most:
        found.append(max(found[-1] + 1, round(found[-1] * 1.02)))
    return found


def _settle(
    disk: ArmDisk, steady: Measured, model: Model, seek_error_ns: float
) -> tuple[float, float, float]:
    """How long the arm settles: the time of steady writes rises by about as much."""
    loads = [load for load, _ in steady]
    settles = np.linspace(0, 2_000_000, 21)
    means, spreads = [], []
    for settle in settles:
        simulated = model.measured(replace(disk, write_settle_ns=float(settle)).device, loads, _SEEDS)
        logs = np.log([[one.mean_ns or 1 for one in runs] for runs in simulated])
        means.append(logs.mean(axis=1))
        spreads.append(logs.std(axis=1, ddof=1))
    measured = np.array([np.mean(np.log([one.mean_ns or 1 for one in runs])) for _, runs in steady])
    counts = np.array([len(runs) for _, runs in steady])
    spread = np.mean(spreads, axis=0)
    # Lines through the simulations take their chance out.
    lines = [np.polyfit(settles, np.array(means)[:, index], 2) for index in range(len(loads))]
    error = np.hypot(spread / np.sqrt(counts), spread / math.sqrt(len(settles) * len(_SEEDS) / 3))
    fine = np.linspace(0, 2_000_000, 2001)
    costs = sum(
        ((np.polyval(line, fine) - measured[index]) / max(float(error[index]), 0.002)) ** 2
        for index, line in enumerate(lines)
    )
    costs = np.asarray(costs)
    best = int(np.argmin(costs))
    likely = fine[costs <= costs[best] + _CERTAIN * max(1.0, float(costs[best]))]
    value = float(fine[best])
    # A seek that is thought too short makes settling too long by as much.
    wrong_seek = TWO_SIDED * seek_error_ns
    low = value - math.hypot(value - float(likely[0]), wrong_seek)
    return value, max(0.0, low), value + math.hypot(float(likely[-1]) - value, wrong_seek)


def _mean_ns(found: DiskMeasurement) -> float:
    return found.mean_ns or 1.0


def _p99_ns(found: DiskMeasurement) -> float:
    return found.p99_ns


def _longest_ns(found: DiskMeasurement) -> float:
    return found.max_ns or 1.0


def starvation(disk: ArmDisk, deep: Measured, model: Model) -> Count:
    """The age at which a command is served before nearer ones, from the times in deep queues.

    The slowest commands show it, and the mean does once most are that old: the arm then goes where they are
    instead of to the nearest.
    """
    loads = [load for load, _ in deep]
    costs = []
    for limit in _STARVATION_NS:
        simulated = model.measured(replace(disk, starvation_ns=limit).device, loads, _SEEDS)
        total = 0.0
        for (_, runs), predicted in zip(deep, simulated, strict=True):
            for number in (_mean_ns, _p99_ns, _longest_ns):
                logs = np.log([number(one) for one in predicted])
                found = float(np.mean(np.log([number(one) for one in runs])))
                chance = float(np.std(logs, ddof=1)) * math.sqrt(1 / len(runs) + 1 / len(predicted))
                error = math.hypot(chance, _LEAST_TAIL_ERROR)
                total += ((found - float(np.mean(logs))) / error) ** 2
        costs.append(total)
    best = int(np.argmin(costs))
    nr_others = max(1, 3 * len(deep) - 1)
    worst = costs[best] + _CERTAIN * max(1.0, costs[best] / nr_others)
    likely = [index for index, cost in enumerate(costs) if cost <= worst]
    low = _STARVATION_NS[max(0, likely[0] - 1)]
    high = None if likely[-1] + 1 >= len(_STARVATION_NS) else _STARVATION_NS[likely[-1] + 1]
    return Count(_STARVATION_NS[best], low, high, how="fitted")
