"""The spare space of a drive that collects garbage, and the rate of overwriting that it leaves.

Erase blocks cannot be seen, and a drive keeps a few of them free. So the space beyond those is fitted, with
numbers of blocks that are powers of two. The course of overwriting tells these apart, though not exactly.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize_scalar

from blklab import _core
from blklab.labs.calibration.disk.fit import TWO_SIDED
from blklab.labs.calibration.disk.flash.figures import KIND, FlashDrive, Floats
from blklab.labs.calibration.disk.flash.loads import KIB, overwriting
from blklab.labs.calibration.disk.flash.search import Observed
from blklab.labs.calibration.disk.model import Model
from blklab.spec.machines import Machine

USABLE_SPARE = "usable_spare_permille"
"""Physical space beyond the capacity and beyond what is kept free, in thousandths of the capacity."""
OVERWRITE_RATE = "overwrite_rate"
"""Bytes a second of random overwriting in the steady state."""
DEPTH = 16
_FIRST_SUPERBLOCKS = 512
_FEWEST_SUPERBLOCKS, _MOST_SUPERBLOCKS = 64, 4096
_MOST_PERMILLE = 2000
_SEEDS = range(11, 13)
_CHANCE_SEEDS = range(101, 107)
_LEAST_ERROR = 0.003
_STEP = 0.05
"""Of the logarithm of the usable spare space, for the derivative."""
_TOLERANCE = 0.002
_NEAR = 0.3
"""Of the logarithm: other numbers of blocks change the spare space by less."""
_RULED_OUT = 4.0
"""By so much more than the best the sum of squares is of what is ruled out."""
_FIGURES = 2
"""That are fitted: spare space and the number of blocks."""
_STEADY_SEEDS = range(11, 15)
_STEADY_ERROR = 0.02
"""Of the steady rate: by so much simulations with other numbers of blocks and seeds differ."""
_STEADY_PART = 0.5
"""Of the time in which all cells are programmed once, for a load that shows the steady state."""


def usable_spare_permille(figures: Mapping[str, str | int]) -> float:
    """The usable spare space of a drive with all these figures of the profile.

    Args:
        figures: ``capacity``, ``spare_permille``, ``dies`` and ``erase_block`` at least.
    """
    superblock = int(figures["dies"]) * int(figures["erase_block"])
    capacity, spare = int(figures["capacity"]), int(figures["spare_permille"])
    count = max(
        math.ceil(capacity * (1000 + spare) / 1000 / superblock),
        math.ceil(capacity / superblock) + _core.FLASH_LEAST_BEYOND,
    )
    return _usable_permille(count, superblock, capacity)


def _usable_permille(count: int, superblock: int, capacity: int) -> float:
    return 1000 * ((count - _core.FLASH_RESERVE) * superblock / capacity - 1)


def steady_overwrite_rate(figures: Mapping[str, str | int], machine: Machine) -> float:
    """Bytes a second of random overwriting of a whole drive in the steady state, with fast cells full.

    Args:
        figures: Of the profile of a flash drive.
        machine: The cost table.
    """
    stripe = int(figures["dies"]) * int(figures["planes"]) * int(figures["page"])
    slow_rate = 1e9 * stripe / int(figures["program"])
    capacity = int(figures["capacity"])
    runtime_us = round(1e6 * _STEADY_PART * capacity / slow_rate)
    load = replace(overwriting(DEPTH, runtime_us, capacity), from_rest=False)
    in_it = {**figures, "slc_cache": 0, "condition": "random"}
    steady = ",".join([KIND, *(f"{key}={value}" for key, value in in_it.items())])
    whole = Model(capacity, machine, {load.name: runtime_us})
    runs = whole.measured(steady, [load], _STEADY_SEEDS)[0]
    return float(np.mean([run.iops for run in runs])) * load.block_kib * KIB


@dataclass(frozen=True)
class Spare:
    """Findings: values with lower and upper bounds of 95 % intervals."""

    drive: FlashDrive
    permille: tuple[float, float, float]
    """The profile's own figure, which depends on the size of its erase blocks."""
    usable_permille: tuple[float, float, float]
    rate: tuple[float, float, float]


def spare_of(drive: FlashDrive, rows: Sequence[Observed], model: Model) -> Spare | None:
    """The spare space under which the simulator gives what was measured; all other figures stay.

    Args:
        drive: With all other figures as they were found.
        rows: Random overwriting for some lengths.
        model: Simulates it.

    Returns:
        None if the loads do not tell.
    """
    found = _by_superblocks(drive, rows, model)
    best = min(found, key=lambda one: one.cost)
    beyond = max(1.0, best.cost / max(1, len(rows) - _FIGURES))
    half = best.half(beyond)
    if half > _NEAR:
        return None
    place = found.index(best)
    entries, rates = [], []
    for number, one in enumerate(found):
        if (one.cost - best.cost) / beyond < _RULED_OUT:
            ends = [(one, one.entry + sign * half) for sign in (-1, 1)]
            entries += [entry for _, entry in ends]
            rates += [_rate(fit, entry, model) for fit, entry in ends]
        elif abs(number - place) == 1:
            # The number of blocks may be anything up to half-way there.
            entries.append((one.entry + best.entry) / 2)
            rates.append(math.sqrt(_rate(one, one.entry, model) * _rate(best, best.entry, model)))
    low, high = math.exp(min(entries)), math.exp(max(entries))
    chosen = best.drive(best.entry)
    usable = usable_spare_permille(chosen.parameters())
    kept = chosen.spare_permille - usable
    return Spare(
        drive=chosen,
        permille=(chosen.spare_permille, low + kept, high + kept),
        usable_permille=(usable, low, high),
        rate=(
            _rate(best, best.entry, model),
            (1 - _STEADY_ERROR) * min(rates),
            (1 + _STEADY_ERROR) * max(rates),
        ),
    )


def likely_drive(drive: FlashDrive, rows: Sequence[Observed], model: Model) -> FlashDrive:
    """The drive with about the spare space of `spare_of`."""
    fit = _Fit(replace(drive, superblocks=_FIRST_SUPERBLOCKS), rows, model)
    fit.solve(*fit.bounds)
    return fit.drive(fit.entry)


def _by_superblocks(drive: FlashDrive, rows: Sequence[Observed], model: Model) -> list[_Fit]:
    """Fits with growing numbers of blocks, the best of them neither the first nor the last, if possible."""
    first = _Fit(replace(drive, superblocks=_FIRST_SUPERBLOCKS), rows, model)
    first.solve(*first.bounds)
    first.estimate_chances()
    found = [first]

    def solved(superblocks: int) -> _Fit:
        fit = _Fit(replace(drive, superblocks=superblocks), rows, model)
        fit.errors = first.errors
        fit.solve(first.entry - _NEAR, first.entry + _NEAR)
        return fit

    first.solve(first.entry - _NEAR, first.entry + _NEAR)
    while True:
        best = min(found, key=lambda one: one.cost)
        if best is found[0] and best.superblocks > _FEWEST_SUPERBLOCKS:
            found.insert(0, solved(best.superblocks // 2))
        elif best is found[-1] and best.superblocks < _MOST_SUPERBLOCKS:
            found.append(solved(best.superblocks * 2))
        else:
            return found


def _rate(fit: _Fit, entry: float, model: Model) -> float:
    return steady_overwrite_rate(fit.drive(entry).parameters(), model.machine)


class _Fit:
    """One figure: the logarithm of the usable spare space in thousandths."""

    def __init__(self, drive: FlashDrive, rows: Sequence[Observed], model: Model) -> None:
        self.superblocks = drive.superblocks
        self.entry, self.cost = 0.0, math.inf
        self.errors = np.full(len(rows), _LEAST_ERROR)
        self._like = drive
        self._rows = rows
        self._model = model
        for one in rows:
            model.runtimes_us[one.row.load.name] = one.row.runtime_us
        self._measured = np.array([one.log for one in rows])
        # Drives have whole superblocks, and profiles whole thousandths.
        figures = drive.parameters()
        by_entry = {
            math.log(usable_spare_permille(figures | {"spare_permille": permille})): permille
            for permille in range(1, _MOST_PERMILLE + 1)
        }
        self._entries, self._permilles = list(by_entry), list(by_entry.values())

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the largest entry."""
        return self._entries[0], self._entries[-1]

    def solve(self, low: float, high: float) -> None:
        """Finds the entry with the least sum of squares."""
        least, most = self.bounds
        best = minimize_scalar(
            lambda entry: float(np.sum(((self._predicted(entry) - self._measured) / self.errors) ** 2)),
            bounds=(max(low, least), min(high, most)),
            method="bounded",
            options={"xatol": _TOLERANCE},
        )
        self.entry, self.cost = float(best.x), float(best.fun)

    def estimate_chances(self) -> None:
        """Errors by chance, of what was measured and of the simulations' mean together."""
        deviations = np.std(self._of(self.drive(self.entry), _CHANCE_SEEDS), axis=1, ddof=1)
        shares = np.sqrt([1 / one.count + 1 / len(_SEEDS) for one in self._rows])
        self.errors = np.hypot(_LEAST_ERROR, deviations * shares)

    def half(self, beyond: float) -> float:
        """Half of the interval, if squares are so many times as large as errors explain."""
        slopes = (self._predicted(self.entry + _STEP) - self._predicted(self.entry - _STEP)) / (2 * _STEP)
        information = float(np.sum((slopes / self.errors) ** 2)) / beyond
        return TWO_SIDED / math.sqrt(information) if information > 0 else math.inf

    def drive(self, entry: float) -> FlashDrive:
        """The drive with the nearest spare space that there is."""
        above = min(bisect.bisect_left(self._entries, entry), len(self._entries) - 1)
        near = min((max(0, above - 1), above), key=lambda index: abs(self._entries[index] - entry))
        return self._with(near)

    def _with(self, index: int) -> FlashDrive:
        return replace(self._like, spare_permille=self._permilles[index])

    def _predicted(self, entry: float) -> Floats:
        """The rows' logarithms; between neighbours along a line."""
        above = min(max(1, bisect.bisect_left(self._entries, entry)), len(self._entries) - 1)
        before, after = self._entries[above - 1 : above + 1]
        part = min(max(0.0, (entry - before) / (after - before)), 1.0)
        logs = [self._of(self._with(index), _SEEDS).mean(axis=1) for index in (above - 1, above)]
        predicted: Floats = (1 - part) * logs[0] + part * logs[1]
        return predicted

    def _of(self, drive: FlashDrive, seeds: Sequence[int]) -> Floats:
        found = []
        for one in self._rows:
            (runs,) = self._model.measured(one.row.device(drive), [one.row.load], seeds)
            found.append([math.log(run.iops) for run in runs])
        logs: Floats = np.array(found)
        return logs
