"""The range of vrates: from a sweep's bandwidths and latencies to two vrates with intervals. Pure.

The *knee* is the vrate with the most bandwidth per latency ("power", Kleinrock 1979): below it, more vrate
gains relatively more bandwidth than it costs latency, above it less. *Saturation* is the vrate with the most
bandwidth. Of vrates that are nearly as good, the least one counts. Vrates at which the protected group does
not get what it asks for are out of the question.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from blklab.analysis.statistics.intervals import standard_error, t_quantile
from blklab.spec.experiment import DEFAULT_CONFIDENCE

Floats = NDArray[np.float64]

LEAST_ISOLATION = 0.9
"""Part of the I/Os asked for that the protected group must get, as in resctl-bench."""
NEARLY = 0.975
"""Part of the greatest value that counts as the greatest."""


class Vrate(BaseModel):
    """A vrate in percent of the model as measured, with its 95 % interval."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    value: int
    low: int
    high: int


class VrateRange(BaseModel):
    """The two ends of the range."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    knee: Vrate
    saturation: Vrate


def vrate_range(
    vrates: Sequence[int], bandwidths: Floats, latencies: Floats, isolations: Floats
) -> VrateRange | None:
    """The range that a sweep tells.

    An interval has all vrates that may be the least of the best, whichever of those that the runs do not
    rule out is the best; by t intervals of differences within seeds. It holds the truth in 95 of 100 cases or
    more.

    Args:
        vrates: Ascending.
        bandwidths: Bytes a second: a row for each seed, a column for each vrate.
        latencies: Of the protected group; likewise. Infinite where it completed nothing.
        isolations: Part of the I/Os asked for that it got; likewise.

    Returns:
        None if no vrate protects the group.
    """
    protected = isolations.mean(axis=0) >= LEAST_ISOLATION
    usable = np.flatnonzero(protected & np.isfinite(latencies).all(axis=0))
    if not len(usable):
        return None
    names = [vrates[int(index)] for index in usable]
    bandwidth = np.log(bandwidths[:, usable])
    knee = _least_of_the_best(names, bandwidth - np.log(latencies[:, usable]))
    saturation = _least_of_the_best(names, bandwidth)
    # Where latency falls with the vrate (the group itself is throttled), the knee lies above saturation.
    saturation = Vrate(
        value=max(saturation.value, knee.value),
        low=max(saturation.low, knee.low),
        high=max(saturation.high, knee.high),
    )
    return VrateRange(knee=knee, saturation=saturation)


def _least_of_the_best(vrates: Sequence[int], logs: Floats) -> Vrate:
    """The least vrate whose value is nearly the greatest."""
    best = int(np.argmax(logs.mean(axis=0)))
    tolerated = -math.log(NEARLY)

    def least(missing: Floats) -> int:
        return vrates[int(np.flatnonzero(missing <= tolerated)[0])]

    missing = logs[:, [best]] - logs
    possible = np.flatnonzero(_bounds(missing)[0] <= 0)
    bounds = [_bounds(logs[:, [index]] - logs) for index in possible]
    return Vrate(
        value=least(missing.mean(axis=0)),
        low=min(least(low) for low, _ in bounds),
        high=max(least(high) for _, high in bounds),
    )


def _bounds(differences: Floats) -> tuple[Floats, Floats]:
    """The bounds of each column's mean."""
    quantile = t_quantile((1 + DEFAULT_CONFIDENCE) / 2, len(differences) - 1)
    mean = differences.mean(axis=0)
    half = quantile * np.array([standard_error(column) for column in differences.T])
    return mean - half, mean + half
