"""A sample of drives instead of blocks: each drive counts once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from blklab.analysis.designs.blocks import BlockDesign
from blklab.analysis.statistics.intervals import MeanInterval, geometric_mean_interval, t_quantile
from blklab.analysis.statistics.population import (
    FEWEST_DRIVES,
    DriveEffect,
    PopulationDifference,
    population_difference,
)
from blklab.analysis.statistics.series import Series, positive


@dataclass(frozen=True, kw_only=True)
class PopulationDesign(BlockDesign):
    """Tests and intervals of `blklab.analysis.statistics.population`; a sample is a drive.

    Values are taken as free of error. Where a drive's ratio has an error of its own, the caller makes the
    differences (`compare_all`), because predictions need it.
    """

    @property
    def fewest_samples(self) -> int:
        """Drives needed before any of the questions may be decided."""
        return FEWEST_DRIVES

    def means(self, series: Series) -> dict[str, MeanInterval]:
        """Geometric mean over drives of each scheduler; drives have no order, so none is correlated."""
        return {
            label: self._mean_interval(present, 1.0)
            for label, values in series.items()
            if (present := positive(values))
        }

    def _mean_interval(self, values: Sequence[float], widened_by: float) -> MeanInterval:
        return geometric_mean_interval(values, self.confidence, widened_by=widened_by)

    def _difference_of(self, first: Sequence[float], second: Sequence[float]) -> PopulationDifference:
        ratios = [math.log(one / other) for one, other in zip(first, second, strict=True)]
        return population_difference([DriveEffect(ratio, 0.0) for ratio in ratios], margin=self.margin)

    def _difference_factor(self, n: int, level: float) -> float:
        return t_quantile(1 - level / 2, n - 1)

    def _equality_factor(self, n: int, level: float) -> float:
        return t_quantile(1 - level, n - 1)
