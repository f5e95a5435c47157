"""Randomised complete blocks: what designs with a fixed and an open number of blocks have in common."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

from blklab.analysis.statistics.difference import Difference
from blklab.analysis.statistics.intervals import MeanInterval
from blklab.analysis.statistics.noise import block_levels
from blklab.analysis.statistics.sample_size import samples_needed
from blklab.analysis.statistics.serial import widening
from blklab.analysis.statistics.series import Series, Values, positive, shared_values


@dataclass(frozen=True, kw_only=True)
class BlockDesign(ABC):
    """Every scheduler runs once in each block; differences are taken within blocks."""

    confidence: float
    margin: float
    nr_questions: int = 1

    @property
    def level(self) -> float:
        """1 - confidence."""
        return 1 - self.confidence

    def of(self, workload: str) -> BlockDesign:  # noqa: ARG002 - all workloads have runs
        """The same design for every workload."""
        return self

    def asking(self, nr_questions: int) -> BlockDesign:
        """The same design with another number of questions."""
        return replace(self, nr_questions=nr_questions)

    def means(self, series: Series) -> dict[str, MeanInterval]:
        """Geometric mean and interval of each scheduler that has a positive value."""
        # The part that all schedulers of a block share drifts and lingers for all of them alike.
        widened_by = widening([level for _, level in block_levels(series)])
        return {
            label: self._mean_interval(present, widened_by)
            for label, values in series.items()
            if (present := positive(values))
        }

    def difference(self, first: Values, second: Values) -> Difference | None:
        """First against second over the blocks in which both have a positive value."""
        paired = shared_values(first, second)
        return self._difference_of(*paired) if paired[0] else None

    def more_samples(self, difference: Difference, *, at_least: bool = False) -> int | None:  # noqa: ARG002
        """Blocks that an undecided question would probably take in addition; None if hopeless."""
        missing = self.fewest_samples - difference.n
        if difference.n < 2:
            return missing
        level = self.level / self.nr_questions
        bound, distance = math.log1p(self.margin), abs(difference.log_ratio)
        deviation = difference.standard_error * math.sqrt(difference.n)
        if distance > bound:
            needed = samples_needed(distance, deviation, lambda n: self._difference_factor(n, level))
        else:
            needed = samples_needed(bound - distance, deviation, lambda n: self._equality_factor(n, level))
        return None if needed is None else max(1, missing, needed - difference.n)

    @property
    @abstractmethod
    def fewest_samples(self) -> int:
        """Blocks needed before any of the questions may be decided."""

    @abstractmethod
    def _mean_interval(self, values: Sequence[float], widened_by: float) -> MeanInterval:
        """Of one scheduler's values, all positive."""

    @abstractmethod
    def _difference_of(self, first: Sequence[float], second: Sequence[float]) -> Difference:
        """Of two series of positive values, one per block, in the order of the blocks."""

    @abstractmethod
    def _difference_factor(self, n: int, level: float) -> float:
        """Half the width of the interval that shows a difference, in standard errors."""

    @abstractmethod
    def _equality_factor(self, n: int, level: float) -> float:
        """Half the width of the interval that shows equality, in standard errors."""
