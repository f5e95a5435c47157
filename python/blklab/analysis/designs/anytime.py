"""Blocks that are added until every question is settled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blklab.analysis.designs.blocks import BlockDesign
from blklab.analysis.statistics.anytime import (
    AnytimeDifference,
    anytime_difference,
    anytime_mean_interval,
    fewest_blocks,
    t_factor,
)
from blklab.analysis.statistics.intervals import MeanInterval


@dataclass(frozen=True, kw_only=True)
class AnytimeDesign(BlockDesign):
    """Tests and intervals of `blklab.analysis.statistics.anytime`: valid after any number of blocks."""

    @property
    def fewest_samples(self) -> int:
        """Blocks needed before any of the questions may be decided."""
        return fewest_blocks(self.nr_questions, self.level)

    def _mean_interval(self, values: Sequence[float], widened_by: float) -> MeanInterval:
        return anytime_mean_interval(values, self.confidence, widened_by=widened_by)

    def _difference_of(self, first: Sequence[float], second: Sequence[float]) -> AnytimeDifference:
        return anytime_difference(first, second, margin=self.margin, fewest=self.fewest_samples)

    def _difference_factor(self, n: int, level: float) -> float:
        return t_factor(n, level)

    def _equality_factor(self, n: int, level: float) -> float:
        return t_factor(n, level)
