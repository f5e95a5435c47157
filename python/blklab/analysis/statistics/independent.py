"""Ratios of two experiments whose blocks have nothing in common, on the log scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from blklab.analysis.statistics.difference import Difference
from blklab.analysis.statistics.noise import block_levels
from blklab.analysis.statistics.sample import Sample
from blklab.analysis.statistics.serial import widening
from blklab.analysis.statistics.series import Series, Values
from blklab.analysis.statistics.two_samples import MeanDifference, MeanEstimate, difference_of_estimates


@dataclass(frozen=True)
class IndependentDifference(Difference):
    """A difference of two independent mean logarithms, by Welch's test; `n` is the smaller number."""

    means: MeanDifference

    def log_interval(self, confidence: float) -> tuple[float, float] | None:
        """Two-sided interval for the log ratio."""
        return self.means.interval(confidence)


def independent_difference_of_logs(
    series: Sequence[Series], name: str, by_rounds: Sequence[bool], *, margin: float
) -> IndependentDifference | None:
    """A scheduler's values in one experiment against those in another.

    Args:
        series: Values of all schedulers, of the experiment to judge and of its baseline.
        name: The scheduler.
        by_rounds: Of each, whether its schedulers took turns: then a scheduler's own values tell how far
            neighbours resemble one another, in blocks the level of all schedulers does.
        margin: Ratios between 1/(1+margin) and 1+margin count as equal.

    Returns:
        None if either has fewer than two positive values.
    """
    estimates = []
    for values, rounds in zip(series, by_rounds, strict=True):
        logs = _logs(values.get(name, {}))
        if len(logs) < 2:
            return None
        sample = Sample(logs)
        levels = logs if rounds else [level for _, level in block_levels(values)]
        estimates.append(MeanEstimate(sample.n, sample.mean, sample.standard_error * widening(levels)))
    return _difference(*estimates, margin=margin)


def shift_of(second: Difference, first: Difference, *, margin: float) -> IndependentDifference:
    """The change of a ratio of two schedulers from one experiment to another.

    Args:
        second: The ratio in the experiment to judge, of at least two blocks.
        first: The same in its baseline.
        margin: As above.
    """
    estimates = [MeanEstimate(one.n, one.log_ratio, one.standard_error) for one in (second, first)]
    return _difference(*estimates, margin=margin)


def _difference(second: MeanEstimate, first: MeanEstimate, *, margin: float) -> IndependentDifference:
    found = difference_of_estimates(second, first)
    return IndependentDifference(
        n=min(second.n, first.n),
        log_ratio=found.estimate,
        standard_error=math.nan if found.standard_error is None else found.standard_error,
        p_difference=found.p_difference,
        p_equivalence=found.p_equivalence(math.log1p(margin)),
        means=found,
    )


def _logs(values: Values) -> list[float]:
    """Logarithms in the order of the blocks; a value of zero has none."""
    return [math.log(values[position]) for position in sorted(values) if values[position] > 0]
