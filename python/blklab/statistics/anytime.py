"""Differences that may be looked at after every block: a time-uniform t test and its intervals.

A t test that is repeated after each block until it succeeds names a false winner far more often than its
level says. Here the chance that the test *ever* rejects a true hypothesis, at whatever block one stops and
for whatever reason, stays below the level. For each value of the mean log ratio the evidence against it is
the likelihood ratio of the t statistic, averaged over a normal distribution of the effect in units of the
unknown standard deviation,

    E_n = sqrt(g / (n + g)) · [(1 + x) / (1 + x·g / (n + g))]^(n/2),    x = t² / (n - 1),

which is a martingale that starts at 1 when that value is the true one; by Ville's inequality it ever reaches
1/a with probability a at the most. The values not rejected form the interval. (Lai, *On confidence
sequences*, 1976; Wang and Ramdas, *Anytime-valid t-tests and confidence sequences for Gaussian means with
unknown variance*, 2024, arXiv 2310.03722; the same mixture for regression in Lindon, Ham, Tingley and
Bojinov, *Anytime-valid linear models and regression adjusted causal inference*, arXiv 2210.08589.)

It is exact for normal log ratios. How it holds for others is measured, not proved: docs/verdicts.md.

No library is used: of those that are maintained, one has no test for an unknown variance, another needs a
newer Python than this package and a convex optimiser, a third a C++ build with Boost.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from blklab.statistics.intervals import MeanInterval
from blklab.statistics.paired import PairedDifference
from blklab.statistics.serial import ROUNDING, Sums, sums_of, widening_of

PRIOR_PRECISION = 0.1
"""g: the effect has standard deviation 1/sqrt(g), some three standard deviations of a block's log ratio.

Small values favour few blocks and large effects. With 0.1 the interval of four to six blocks is about as
narrow as the method allows, at the price of about a tenth of its width at eighteen.
"""


@dataclass(frozen=True)
class AnytimeDifference(PairedDifference):
    """A mean log ratio whose p values and interval hold however the number of blocks came about.

    The p values are the smallest of all looks so far: once reached, a level is not lost again.
    """

    def half_width(self, confidence: float) -> float:
        """Half of the width of the interval for the log ratio; infinite for too few blocks."""
        return _times(t_factor(self.n, 1 - confidence), self.standard_error)


def anytime_difference(
    first: Sequence[float], second: Sequence[float], *, margin: float, fewest: int = 2
) -> AnytimeDifference:
    """Compares two series of positive figures, paired by position, after any number of blocks.

    Args:
        first: One figure a block, in the order of the blocks.
        second: The other's figures for the same blocks.
        margin: Ratios between 1/(1+margin) and 1+margin count as equal.
        fewest: Looks at fewer blocks than this do not count (`fewest_blocks`).
    """
    if len(first) == 0:
        raise ValueError("no block has both series")
    bound = math.log1p(margin)
    sums = Sums()
    error = math.nan
    against_zero = for_equality = 0.0
    for one, other in zip(first, second, strict=True):
        sums.add(math.log(one) - math.log(other))
        if sums.n < 2:
            continue
        error = math.sqrt(sums.deviations / (sums.n - 1) / sums.n) * widening_of(sums)
        if sums.n < fewest:
            continue
        center = sums.mean
        against_zero = max(against_zero, log_e_value(_t(center, error), sums.n))
        if abs(center) <= bound:
            # Both ends of the margin must be rejected, and from within.
            nearer = min(abs(bound - center), abs(bound + center))
            for_equality = max(for_equality, log_e_value(_t(nearer, error), sums.n))
    return AnytimeDifference(sums.n, sums.mean, error, math.exp(-against_zero), math.exp(-for_equality))


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


def log_e_value(t_statistic: float, n: int) -> float:
    """Logarithm of the evidence E_n against a mean.

    Args:
        t_statistic: (mean - hypothesis) / standard error; infinite where the error is zero.
        n: Number of values, at least two.
    """
    share = PRIOR_PRECISION / (n + PRIOR_PRECISION)
    if math.isinf(t_statistic):
        growth = -math.log(share)
    else:
        x = t_statistic * t_statistic / (n - 1)
        growth = math.log1p(x) - math.log1p(x * share)
    return 0.5 * math.log(share) + n / 2 * growth


def fewest_blocks(nr_questions: int, level: float) -> int:
    """Blocks before which nothing is claimed, whatever the evidence of a t test.

    That test takes the noise to be normal. The worst that disks do is a coin toss: a run finds a cache warm
    or does not. Then n blocks in a row happen to find one scheduler's runs warm and another's cold with
    probability 2/4^n, without any scatter that would warn of it. Half of the level is kept for that, over
    all questions together.
    """
    n = 3
    while nr_questions * 2 * 4.0**-n > level / 2:
        n += 1
    return n


@functools.lru_cache(maxsize=4096)
def t_factor(n: int, level: float) -> float:
    """How many standard errors the interval reaches to each side of the mean of n values.

    Solves E_n = 1/level. Infinite while no data could reach that evidence.
    """
    if n < 2:
        return math.inf
    share = PRIOR_PRECISION / (n + PRIOR_PRECISION)
    wanted = (1 / (math.sqrt(share) * level)) ** (2 / n)
    if wanted * share >= 1:
        return math.inf
    return math.sqrt((n - 1) * (wanted - 1) / (1 - wanted * share))


def _t(distance: float, error: float) -> float:
    """Distance in standard errors; no distance is none, even where there is no error."""
    if abs(distance) <= ROUNDING:
        return 0.0
    return distance / error if error > 0 else math.inf


def _times(factor: float, error: float) -> float:
    """Their product; no error times an unreachable level is still unknown."""
    return math.inf if math.isinf(factor) else factor * error
