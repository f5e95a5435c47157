"""Finds out if a disk has an arm. It is measured, not asked: virtual disks call themselves rotational."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from blklab.labs.calibration.disk.loads import ARM_PROBES, DiskLoad
from blklab.labs.calibration.disk.observations import DiskObservation, Row

_LEAST_GROWTH = 1.03
"""From the second span to the first, 32 times as long."""
_LEAST_DIFFERENCE_NS = 1_000_000
"""Between the longest and the shortest ways. A full stroke takes more than 5 ms on every disk with an arm."""
_LEAST_WAIT_NS = 1_500_000
"""Over the shortest ways. Half a revolution takes 2 ms at 15,000 a minute."""
_CERTAIN = 2.0
"""Standard errors."""


def has_arm(found: Mapping[Row, DiskObservation], probes: Sequence[DiskLoad] = ARM_PROBES) -> bool:
    """Whether single reads wait for a rotation even in a small part, and take milliseconds longer over all.

    A cache before a disk without an arm also shortens reads that stay in a small part, but to less than any
    rotation. The two smaller spans need not differ: there rotation is nearly all of the time.

    Args:
        found: Observations of the probes.
        probes: From the longest span to the shortest.
    """
    far, middle, near = (found[probe, "p50"] for probe in probes)
    growth = far.log - middle.log
    return (
        growth > max(math.log(_LEAST_GROWTH), _CERTAIN * math.hypot(far.error, middle.error))
        and math.exp(near.log) > _LEAST_WAIT_NS
        and math.exp(far.log) - math.exp(near.log) > _LEAST_DIFFERENCE_NS
    )
