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

from blklab.execution.calibration.disk.flash.loads import KIB, SLOT_KIB, longest_stride, strided
from blklab.execution.calibration.disk.ground import Measure
from blklab.execution.calibration.disk.loads import REFERENCE, Load

_STRIDE_US = 50_000
_COLLIDE = 1.6
"""Reads at a stride that is a stripe are faster than at the longest by less: two dies are twice as fast, and
levels of cells differ by less."""
_APART = 1.5
"""Times by which reads at random places are faster than those on one die."""
_ODD_FACTORS = (7, 5, 3)
_MOST_CHANNELS = 64
_MOST_UNIT_KIB = 512


def stripe_bytes(measure: Measure, space_bytes: int) -> int | None:
    """Bytes from a unit to the next on the same die; None if addresses make no difference.

    Args:
        measure: Measures on the disk.
        space_bytes: Of the disk, as far as it may be used.
    """

    def rate(load: Load) -> float:
        return measure(load, _STRIDE_US).iops

    stride = longest_stride(space_bytes)
    if 2 * stride > space_bytes:
        return None
    on_one_die = rate(strided(stride, space_bytes))
    if rate(REFERENCE) < _APART * on_one_die:
        return None

    def collide(step: int) -> bool:
        return step >= 2 * SLOT_KIB * KIB and rate(strided(step, space_bytes)) < _COLLIDE * on_one_die

    for factor in _ODD_FACTORS:
        if collide(stride // factor):
            stride //= factor
    while stride % 2 == 0 and collide(stride // 2):
        stride //= 2
    return stride


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
