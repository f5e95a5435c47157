"""Schedulers that take turns within one load, until every question is settled."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from blklab.analysis.statistics.anytime import t_factor
from blklab.analysis.statistics.difference import Difference
from blklab.analysis.statistics.intervals import MeanInterval
from blklab.analysis.statistics.sample_size import samples_needed
from blklab.analysis.statistics.serial import widening
from blklab.analysis.statistics.series import Series, Values, positive
from blklab.analysis.statistics.switchback import (
    fewest_rounds,
    standard_errors_for,
    switchback_difference,
)

LUCK = 2.0
"""A question is not given up if it could be settled with an estimate off by this many standard errors."""


@dataclass(frozen=True, kw_only=True)
class SwitchbackDesign:
    """Tests and intervals of `blklab.analysis.statistics.switchback`: valid after any number of rounds.

    A sample is a round, in which every scheduler has one slot.
    """

    confidence: float
    margin: float
    nr_questions: int = 1

    @property
    def level(self) -> float:
        """1 - confidence."""
        return 1 - self.confidence

    @property
    def fewest_samples(self) -> int:
        """Rounds needed before any of the questions may be decided."""
        return fewest_rounds(self.nr_questions, self.level)

    def of(self, workload: str) -> SwitchbackDesign:  # noqa: ARG002 - all workloads have slots
        """The same design for every workload."""
        return self

    def asking(self, nr_questions: int) -> SwitchbackDesign:
        """The same design with another number of questions."""
        return replace(self, nr_questions=nr_questions)

    def means(self, series: Series) -> dict[str, MeanInterval]:
        """Arithmetic mean and interval of each scheduler that has a positive value.

        Slots follow one another, so their values are serially correlated; the interval is widened for that.
        """
        return {label: self._mean(values) for label, values in series.items() if positive(values)}

    def difference(self, first: Values, second: Values) -> Difference | None:
        """First against second over the rounds in which both have a value; a value may be 0."""
        rounds = sorted(first.keys() & second.keys())
        if not rounds:
            return None
        return switchback_difference(
            [first[number] for number in rounds],
            [second[number] for number in rounds],
            margin=self.margin,
        )

    def more_samples(self, difference: Difference, *, at_least: bool = False) -> int | None:
        """Rounds that an undecided question would probably take in addition; None if hopeless."""
        missing = self.fewest_samples - difference.n
        if not math.isfinite(difference.standard_error):
            return max(1, missing)
        distance, error = abs(difference.log_ratio), difference.standard_error
        distances = (max(0.0, distance - LUCK * error), distance + LUCK * error) if at_least else (distance,)
        needs = [
            needed
            for one in distances
            if (needed := self._rounds_for(one, error * math.sqrt(difference.n))) is not None
        ]
        return max(1, missing, min(needs) - difference.n) if needs else None

    def _rounds_for(self, distance: float, deviation: float) -> int | None:
        """Rounds that show a difference of that log ratio, or that it is within the margin."""
        level, bound = self.level / self.nr_questions, math.log1p(self.margin)
        if distance > bound:
            return samples_needed(distance, deviation, lambda _: standard_errors_for(level / 2))
        return samples_needed(bound - distance, deviation, lambda _: standard_errors_for(level))

    def _mean(self, values: Values) -> MeanInterval:
        ordered = np.array([values[number] for number in sorted(values)], dtype=float)
        n, mean = len(ordered), float(ordered.mean())
        factor = t_factor(n, self.level)
        if not math.isfinite(factor):
            return MeanInterval(n, mean, None, None)
        error = float(ordered.std(ddof=1)) / math.sqrt(n) * widening(ordered.tolist())
        spread = math.exp(factor * error / mean)
        return MeanInterval(n, mean, mean / spread, mean * spread)
