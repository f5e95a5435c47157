"""Numbers that are read from the measurements of a load, and how uncertain they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from blklab.labs.calibration.disk.ground import DiskMeasurement
from blklab.labs.calibration.disk.loads import CalibrationLoad

Quantity = Literal["middle", "mean", "step"]
Number = Callable[[DiskMeasurement], float]
_BIN = 0.0045
"""A bin of a histogram is up to 1.6 % wide: the standard deviation of a place in it."""

_LEAST_ERROR = 0.001
"""Of a number: the host's own time is not known better."""


def _middle(found: DiskMeasurement) -> float:
    """Between the 5th and the 95th percentile: of an even distribution it is less uncertain than the mean."""
    return ((found.p05_ns or 0) + found.p95_ns) / 2


def _mean(found: DiskMeasurement) -> float:
    return found.mean_ns or 0


def _step(found: DiskMeasurement) -> float:
    """How much longer than the mean the slowest percent take, those that end on another track.

    The mean is exact; the median is known to a bin, which is a large part of the difference.
    """
    return found.p99_ns - _mean(found)


NUMBERS: dict[Quantity, Number] = {"middle": _middle, "mean": _mean, "step": _step}


@dataclass(frozen=True)
class Row:
    """One number of one load."""

    load: CalibrationLoad
    quantity: Quantity

    def values(self, measurements: Sequence[DiskMeasurement]) -> list[float]:
        """The number in each measurement."""
        return [NUMBERS[self.quantity](one) for one in measurements]

    def bin_error(self, measurement: DiskMeasurement, count: int) -> float:
        """The uncertainty that the histogram's bins leave in the mean of some repetitions, in nanoseconds."""
        if self.quantity == "mean":
            return 0.0
        if self.quantity == "middle":
            # Drawn places spread the waits over many bins.
            return _BIN * measurement.p50_ns / math.sqrt(count)
        # Reads in order take the same times in every repetition, and in every simulation.
        return _BIN * math.sqrt(2) * measurement.p99_ns


def error_of(row: Row, measured: Sequence[DiskMeasurement], simulated: Sequence[DiskMeasurement]) -> float:
    """Standard error of a row's mean less that of the simulations, in nanoseconds.

    A few repetitions say little about their scatter; many simulations of the same load say what chance alone
    does. The larger counts.

    Args:
        row: The number.
        measured: The repetitions.
        simulated: The same load on a disk like it, with different seeds.
    """
    count = len(measured)
    chance = float(np.std(row.values(simulated), ddof=1)) if len(simulated) > 1 else 0.0
    # Half the variance of four repetitions is chance, so theirs counts only if it is far larger.
    own = float(np.std(row.values(measured), ddof=1)) if count > 1 else 0.0
    scatter = max(chance, own if own > 2 * chance else 0.0)
    least = _LEAST_ERROR * abs(float(np.mean(row.values(measured))))
    together = scatter * math.sqrt(1 / count + 1 / len(simulated))
    return math.hypot(together, row.bin_error(measured[0], count), least)
