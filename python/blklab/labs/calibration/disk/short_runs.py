"""Takes the effect of their shortness out of the measurements of short runs.

Runs that end before a bucket is empty may last a few milliseconds and have a few dozen I/Os. Their rates and
percentiles differ from those of long runs: of the I/Os under way at the beginning and the end, some are
counted that should not be. The same differences show in the simulator on a disk that is nearly the measured
one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from blklab.labs.calibration.disk.forward import FINE_IOS, Forward
from blklab.labs.calibration.disk.loads import DiskLoad
from blklab.labs.calibration.disk.model import Model
from blklab.labs.calibration.disk.observations import DiskObservation, Row, logs_of
from blklab.labs.calibration.disk.parameters import VirtualDisk

_MOST_RUNS = 64
_LONG_SEEDS = range(31, 35)
_FIRST_SHORT_SEED = 101
_PART_OF_IO = 1 / math.sqrt(12)
"""A count is whole: the standard deviation of what is cut off. Without chance it is alike in all runs, so
repetitions do not show it."""


def as_if_long(
    found: Mapping[Row, DiskObservation],
    forward: Forward,
    disk: VirtualDisk,
    runtimes_us: Mapping[DiskLoad, int],
) -> dict[Row, DiskObservation]:
    """The observations as long runs would have given them.

    Args:
        found: What was measured.
        forward: Simulates long runs, as the fit does.
        disk: About the measured one, without its limits.
        runtimes_us: Of the loads that ran for less time than the fit simulates.
    """
    model = Model(forward.facts.space_bytes, forward.machine)
    model.runtimes_us = {load.name: runtime_us for load, runtime_us in runtimes_us.items()}
    corrected = dict(found)
    devices = {load: forward.device(disk, load) for load in runtimes_us}
    long_by_seed = [forward.on_devices(devices, seed=seed) for seed in _LONG_SEEDS]
    for load, runtime_us in runtimes_us.items():
        ios = forward.rates[load] * runtime_us / 1e6
        seeds = _seeds(ios)
        short = [logs_of(one) for one in model.measured(devices[load], [load], seeds)[0]]
        for quantity in short[0]:
            row = (load, quantity)
            if row not in found:
                continue
            in_short = np.array([logs[quantity] for logs in short])
            in_long = np.array([logs[load][quantity] for logs in long_by_seed])
            chance = math.sqrt(
                float(np.var(in_short, ddof=1)) / len(in_short)
                + float(np.var(in_long, ddof=1)) / len(in_long)
            )
            corrected[row] = replace(
                found[row],
                log=found[row].log - float(np.mean(in_short) - np.mean(in_long)),
                error=math.hypot(found[row].error, chance, _PART_OF_IO / ios),
            )
    return corrected


def _seeds(ios: float) -> Sequence[int]:
    """So many runs that together they have the I/Os of a long one, within reason."""
    number = min(_MOST_RUNS, max(4, math.ceil(FINE_IOS / max(1.0, ios))))
    return range(_FIRST_SHORT_SEED, _FIRST_SHORT_SEED + number)
