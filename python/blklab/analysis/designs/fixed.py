"""A number of blocks that was fixed in advance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blklab.analysis.designs.blocks import BlockDesign
from blklab.analysis.statistics.intervals import MeanInterval, geometric_mean_interval, t_quantile
from blklab.analysis.statistics.paired import FixedDifference, paired_difference

FEWEST_BLOCKS = 3
"""No design decides anything with fewer blocks."""


@dataclass(frozen=True, kw_only=True)
class FixedDesign(BlockDesign):
    """Tests and intervals of `blklab.analysis.statistics.paired`: valid at the planned number of blocks."""

    @property
    def fewest_samples(self) -> int:
        """Blocks needed before any of the questions may be decided."""
        return FEWEST_BLOCKS

    def _mean_interval(self, values: Sequence[float], widened_by: float) -> MeanInterval:
        return geometric_mean_interval(values, self.confidence, widened_by=widened_by)

    def _difference_of(self, first: Sequence[float], second: Sequence[float]) -> FixedDifference:
        smallest_level = self.level / self.nr_questions
        return paired_difference(first, second, margin=self.margin, smallest_level=smallest_level)

    def _difference_factor(self, n: int, level: float) -> float:
        return t_quantile(1 - level / 2, n - 1)

    def _equality_factor(self, n: int, level: float) -> float:
        return t_quantile(1 - level, n - 1)
