"""Finds out if a disk has an arm. It is measured, not asked: virtual disks call themselves rotational."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

from blklab.execution.calibration.disk.loads import ARM_PROBES, DiskLoad
from blklab.execution.calibration.disk.observations import Observation, Row

_LEAST_GROWTH = 1.03
"""From each span to the next, 32 times as long."""
_LEAST_DIFFERENCE_NS = 1_000_000
"""Between the longest and the shortest ways. A full stroke takes more than 5 ms on every disk with an arm."""
_CERTAIN = 2.0
"""Standard errors."""


def has_arm(found: Mapping[Row, Observation], probes: Sequence[DiskLoad] = ARM_PROBES) -> bool:
    """Whether single reads take longer the farther apart they are, at every step and by milliseconds.

    A cache before a disk without an arm shortens reads that stay in a small part, but then only the smallest
    span differs.

    Args:
        found: Observations of the probes.
        probes: From the longest span to the shortest.
    """
    times = [(found[probe, "p50"].log, found[probe, "p50"].error) for probe in probes]
    grows = all(
        far - near > max(math.log(_LEAST_GROWTH), _CERTAIN * math.hypot(far_error, near_error))
        for (far, far_error), (near, near_error) in itertools.pairwise(times)
    )
    return grows and math.exp(times[0][0]) - math.exp(times[-1][0]) > _LEAST_DIFFERENCE_NS
