"""Differences that can be checked after every block: a time-uniform t test and its intervals.

A t test that is repeated after each block until it succeeds names a false winner far more often than its
level says. With the test in this file, the chance that it *ever* rejects a true hypothesis stays below the
level, at whichever block the experiment stops and for whatever reason. For each value of the mean log ratio
the evidence against it is the likelihood ratio of the t statistic, averaged over a normal distribution of the
effect in units of the unknown standard deviation,

    E_n = sqrt(g / (n + g)) · [(1 + x) / (1 + x·g / (n + g))]^(n/2),    x = t² / (n - 1),

which is a martingale that starts at 1 when that value is the true one. How likely it ever reaches a bound is
computed in `blklab.analysis.statistics.crossing`. The values not rejected form the interval. (Lai, *On
confidence sequences*, 1976; Wang and Ramdas, *Anytime-valid t-tests and confidence sequences for Gaussian
means with unknown variance*, 2024, arXiv 2310.03722; the same mixture for regression in Lindon, Ham, Tingley
and Bojinov, *Anytime-valid linear models and regression adjusted causal inference*, arXiv 2210.08589.)

It is exact for normal log ratios. For other distributions its error rates are measured, not proved:
docs/appendix/verdicts.md.

No library is used: of the maintained ones, one has no test for an unknown variance, one needs a convex
optimiser and a newer Python than this package does, and one a C++ build with Boost.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from blklab.analysis.statistics.crossing import (
    chance_of_reaching,
    log_bound_for,
    log_e_value,
    log_rise,
    share_of_prior,
)
from blklab.analysis.statistics.difference import Difference
from blklab.analysis.statistics.intervals import MeanInterval
from blklab.analysis.statistics.serial import ROUNDING, Sums, sums_of, widening_of


@dataclass(frozen=True)
class AnytimeDifference(Difference):
    """A mean log ratio whose p values and interval hold for any stopping rule.

    The p values are the smallest of all looks so far: a level that was reached once stays reached.
    """

    def log_interval(self, confidence: float) -> tuple[float, float] | None:
        """Two-sided interval for the log ratio, at whichever block the experiment stops."""
        half = _times(t_factor(self.n, 1 - confidence), self.standard_error)
        return None if not math.isfinite(half) else (self.log_ratio - half, self.log_ratio + half)


def anytime_difference(
    first: Sequence[float], second: Sequence[float], *, margin: float, fewest: int = 4
) -> AnytimeDifference:
    """Compares two series of positive values, paired by position, after any number of blocks.

    Args:
        first: One value per block, in the order of the blocks.
        second: The other's values for the same blocks.
        margin: Ratios between 1/(1+margin) and 1+margin count as equal.
        fewest: Looks at fewer blocks than this do not count (`fewest_blocks`).

    Raises:
        ValueError: if the series are empty.
    """
    if len(first) == 0:
        raise ValueError("no block has both series")
    bound = math.log1p(margin)
    sums = Sums()
    error = math.nan
    against_zero = for_equality = -math.inf
    for one, other in zip(first, second, strict=True):
        sums.add(math.log(one) - math.log(other))
        if sums.n < 2:
            continue
        error = math.sqrt(sums.deviations / (sums.n - 1) / sums.n) * widening_of(sums)
        if sums.n < fewest:
            continue
        center, rise = sums.mean, log_rise(sums.n)
        against_zero = max(against_zero, log_e_value(_t(center, error), sums.n) - rise)
        if abs(center) <= bound:
            # Both ends of the margin must be rejected, and from within.
            nearer = min(abs(bound - center), abs(bound + center))
            for_equality = max(for_equality, log_e_value(_t(nearer, error), sums.n) - rise)
    if sums.deviations == 0.0 and abs(sums.mean) <= ROUNDING:
        against_zero = -math.inf
    p_difference, p_equivalence = (chance_of_reaching(seen, fewest) for seen in (against_zero, for_equality))
    return AnytimeDifference(sums.n, sums.mean, error, p_difference, p_equivalence)


def anytime_mean_interval(
    values: Sequence[float], confidence: float, *, widened_by: float = 1.0
) -> MeanInterval:
    """The time-uniform interval for a geometric mean; arguments as for `geometric_mean_interval`."""
    sums = sums_of([math.log(value) for value in values])
    n, center = sums.n, sums.mean
    factor = t_factor(n, 1 - confidence)
    if not math.isfinite(factor):
        return MeanInterval(n, math.exp(center), None, None)
    half = factor * math.sqrt(sums.deviations / (n - 1) / n) * widened_by
    return MeanInterval(n, math.exp(center), math.exp(center - half), math.exp(center + half))


def fewest_blocks(nr_questions: int, level: float) -> int:
    """Blocks needed before any claim, however strong the evidence of the t test.

    The t test assumes normal noise. The worst noise of a disk is a coin toss: a run finds a cache warm or
    cold. With probability 2/4^n, n blocks in a row find one scheduler's runs warm and another's cold, and
    show no scatter that would reveal it. Half of the level is reserved for that, over all questions
    together.
    """
    n = 3
    while nr_questions * 2 * 4.0**-n > level / 2:
        n += 1
    return n


@functools.lru_cache(maxsize=4096)
def t_factor(n: int, level: float) -> float:
    """How many standard errors the interval reaches to each side of the mean of n values.

    Infinite before the first look, and as long as no data could reach the evidence that the level requires.
    """
    first = fewest_blocks(1, level)
    return math.inf if n < first else t_for_evidence(n, log_bound_for(level, first) + log_rise(n))


def t_for_evidence(n: int, log_evidence: float) -> float:
    """The t statistic of n values that gives E_n; infinite if none does."""
    share = share_of_prior(n)
    wanted = math.exp((log_evidence - 0.5 * math.log(share)) * 2 / n)
    if wanted * share >= 1:
        return math.inf
    return math.sqrt((n - 1) * (wanted - 1) / (1 - wanted * share))


def _t(distance: float, error: float) -> float:
    """Distance in standard errors; 0 for a distance of 0, even if the error is 0 too."""
    if abs(distance) <= ROUNDING:
        return 0.0
    return distance / error if error > 0 else math.inf


def _times(factor: float, error: float) -> float:
    """Their product; infinite if the factor is, even if the error is 0."""
    return math.inf if math.isinf(factor) else factor * error
