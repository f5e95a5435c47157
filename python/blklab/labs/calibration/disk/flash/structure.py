"""Finds dies, program units and channels, by reads at chosen addresses.

Data that were written in order lie on the dies in turn, a program unit on each. Reads that are a whole number
of such stripes apart all wait for the same die, whatever their number; so do no others. A single read of
growing size takes longer by its channel's speed until it fills a unit, then not at all until every channel
has one unit, and again with each further unit of a channel.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from blklab.labs.calibration.disk.flash.loads import KIB, SLOT_KIB, longest_stride, strided
from blklab.labs.calibration.disk.ground import Measure
from blklab.labs.calibration.disk.loads import REFERENCE, SINGLE_READS, CalibrationLoad

_STRIDE_US = 50_000
_LEAST_MARGIN = 1.06
"""Between the highest rate of one die and the lowest of two: with less, cells differ too much to tell."""
_APART = 1.5
"""Times by which reads at random places are faster than those on one die."""
_FACTORS = (7, 5, 3, 2)
_MOST_CHANNELS = 64
_MOST_UNIT_KIB = 512


def stripe_bytes(measure: Measure, space_bytes: int) -> int | None:
    """Bytes from a unit to the next on the same die; None if addresses make no difference.

    Args:
        measure: Measures on the disk.
        space_bytes: Of the disk, as far as it may be used.
    """
    stride = longest_stride(space_bytes)
    if 2 * stride > space_bytes:
        return None
    on_one_die = measure(strided(stride, space_bytes), _STRIDE_US)
    if measure(REFERENCE, _STRIDE_US).iops < _APART * on_one_die.iops:
        return None
    most = _most_of_one_die(measure, on_one_die.iops, strided(stride, space_bytes, depth=1))
    if most is None:
        return None

    def collide(step: int) -> bool:
        return step >= 2 * SLOT_KIB * KIB and measure(strided(step, space_bytes), _STRIDE_US).iops < most

    for factor in _FACTORS:
        while stride % factor == 0 and collide(stride // factor):
            stride //= factor
    return stride


def _most_of_one_die(measure: Measure, rate: float, single: CalibrationLoad) -> float | None:
    """The rate that tells one die from two, whatever levels of cells are read.

    Args:
        measure: Measures on the disk.
        rate: Of one die, at one level.
        single: A single read at the same level.
    """
    here = measure(single, _STRIDE_US)
    everywhere = measure(SINGLE_READS, _STRIDE_US)
    read_ns = 1e9 / rate
    fastest_ns = read_ns + min(0.0, everywhere.p05_ns - here.p50_ns if everywhere.p05_ns else 0.0)
    slowest_ns = read_ns + max(0.0, everywhere.p95_ns - here.p50_ns)
    of_one, of_two = 1e9 / fastest_ns, 2e9 / slowest_ns
    return None if fastest_ns <= 0 or of_two < _LEAST_MARGIN * of_one else math.sqrt(of_one * of_two)


@dataclass(frozen=True)
class Structure:
    """How a stripe is divided, and what a single read takes: a constant, and times for each KiB."""

    unit_bytes: int
    dies: int
    channels: int
    channel: float
    link: float
    constant_ns: float


def structure_of(stripe: int, sizes_kib: Sequence[int], times_ns: Sequence[float]) -> Structure:
    """The units and channels under which single reads of these sizes take these times.

    Args:
        stripe: From `stripe_bytes`.
        sizes_kib: At most a stripe.
        times_ns: Mean latencies.
    """
    sizes = np.array(sizes_kib, dtype=float)
    times = np.array(times_ns)
    best: tuple[float, Structure] | None = None
    for unit_kib, channels in _divisions(stripe):
        on_channel = np.array([_on_one_channel(size, unit_kib, channels) for size in sizes_kib])
        columns = np.column_stack([np.ones(len(sizes)), on_channel, sizes])
        solution, _ = nnls(columns / times[:, None], np.ones(len(times)))
        misfit = float(np.sum((columns @ solution / times - 1) ** 2))
        # Further channels that no load tells apart are not assumed.
        if best is None or misfit < best[0] * (1 - 1e-6) - 1e-12:
            constant, channel, link = solution.tolist()
            unit = unit_kib * KIB
            best = misfit, Structure(unit, stripe // unit, channels, channel, link, constant)
    if best is None:
        raise ValueError("a stripe has one unit at least")
    return best[1]


def _on_one_channel(size_kib: int, unit_kib: int, channels: int) -> float:
    """KiB of a read on the channel that has most of it."""
    before = math.ceil(size_kib / unit_kib) - 1
    turns, channel = divmod(before, channels)
    # The last unit, which may be a part of one, is alone in its turn or is not.
    last = size_kib - before * unit_kib if channel == 0 else unit_kib
    return turns * unit_kib + last


def _divisions(stripe: int) -> list[tuple[int, int]]:
    """Units in KiB, and numbers of channels: as many as dies, or fewer."""
    units = [
        unit
        for unit in (SLOT_KIB << power for power in range(int(math.log2(_MOST_UNIT_KIB // SLOT_KIB)) + 1))
        if stripe % (unit * KIB) == 0
    ]
    return [
        (unit, channels)
        for unit, channels in itertools.product(units, range(1, _MOST_CHANNELS + 1))
        if channels <= stripe // (unit * KIB)
    ]
