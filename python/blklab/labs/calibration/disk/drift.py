"""Drift of the disk's speed while it was measured, and measurements that stand out."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict
from scipy import stats

from blklab.labs.calibration.disk.ground import DiskMeasurement
from blklab.labs.calibration.disk.loads import REFERENCE
from blklab.spec.experiment import DEFAULT_CONFIDENCE

_FEWEST = 4
_NOTABLE = 0.02
_MAD_TO_DEVIATION = 1.4826
_OUTLYING = 6.0
_LEAST_OUTLYING = 0.1


class Drift(BaseModel):
    """How the disk's speed changed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    change: float
    """Of the reference load's rate from the beginning to the end, as a line through all its runs has it."""
    low: float
    high: float
    """Its 95 % interval."""
    outliers: int
    """Runs that are far from the others of their load."""
    runs: int

    @property
    def is_notable(self) -> bool:
        """Whether the speed changed by more than chance explains."""
        return (self.low > 0 or self.high < 0) and abs(self.change) > _NOTABLE

    def remarks(self) -> list[str]:
        """Notes for the reader of the profile."""
        found = []
        if self.is_notable:
            found.append(
                f"the disk drifted: within the calibration, the reference load changed by"
                f" {100 * self.change:+.0f} % [{100 * self.low:+.0f}, {100 * self.high:+.0f}]"
            )
        if self.outliers:
            found.append(f"{self.outliers} of {self.runs} runs were far from the others of their load")
        return found


def drift_of(measurements: Sequence[DiskMeasurement]) -> Drift:
    """Drift over all measurements, by a line through the reference load's."""
    runs = [(one.at_s, math.log(one.iops)) for one in measurements if one.load == REFERENCE.name]
    outliers = _outliers(measurements)
    times, logs = np.array(runs).T if runs else (np.array([]), np.array([]))
    length = max((one.at_s + one.took_s for one in measurements), default=0.0)
    if len(runs) < _FEWEST or np.ptp(times) == 0:
        return Drift(change=0, low=-1, high=1, outliers=outliers, runs=len(measurements))
    line = stats.linregress(times, logs)
    half = float(stats.t.ppf((1 + DEFAULT_CONFIDENCE) / 2, len(runs) - 2) * line.stderr)
    change, low, high = (
        math.expm1(slope * length) for slope in (line.slope, line.slope - half, line.slope + half)
    )
    return Drift(change=change, low=low, high=high, outliers=outliers, runs=len(measurements))


def _outliers(measurements: Sequence[DiskMeasurement]) -> int:
    by_load: dict[str, list[float]] = {}
    for one in measurements:
        by_load.setdefault(one.load, []).append(math.log(one.iops))
    off = [np.abs(np.array(logs) - np.median(logs)) for logs in by_load.values() if len(logs) >= _FEWEST - 1]
    if not off:
        return 0
    deviations = np.concatenate(off)
    limit = max(_LEAST_OUTLYING, _OUTLYING * _MAD_TO_DEVIATION * float(np.median(deviations)))
    return int(np.sum(deviations > limit))
