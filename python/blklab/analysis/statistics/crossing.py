"""The evidence that a level requires if the data are checked after every block.

The evidence E_n of `blklab.analysis.statistics.anytime` ever reaches m with probability at most 1/m
(Ville's inequality). That is exact for evidence that grows continuously; after four blocks it jumps, and
overshoots m by far. Here the probability itself is computed, for looks from a first block on and for a bound
that rises slowly,

    p(m) = P(E_n >= m * rise(n) for any n >= first),    rise(n) = sqrt(max(1, n / 18)),

so most of the level is spent on the usual numbers of blocks, and an experiment may still continue
indefinitely. E_n is the likelihood ratio of "an effect drawn from the mixture" to "no effect". Hence, with
series that have such an effect, and T the block at which they cross,

    p(m) = mean of 1 / E_T,

which takes few series even for small p (importance sampling; Siegmund, *Sequential Analysis*, 1985, chapter
II; Siegmund, *Importance sampling in the Monte Carlo study of sequential tests*, 1976). Exact for normal
values, up to the simulation's error, for which 1 % is added.
"""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import NDArray
from scipy import special

PRIOR_PRECISION = 0.1
"""g: the effect has standard deviation 1/sqrt(g), some three standard deviations of a block's log ratio.

Small values favour few blocks and large effects. With 0.1 the interval of four to six blocks is about as
narrow as the method allows; at eighteen blocks it is about a tenth wider.
"""
USUAL_BLOCKS = 18
"""Up to here the bound does not rise. This is the default budget."""

_SERIES = 8000
_LAST_BLOCK = 400
"""A series that has not crossed by then counts with the most that it could still add."""
_LOWEST, _HIGHEST, _STEP = -3.0, 16.0, 0.05
"""Logarithms of m for which p is tabulated."""
_SIMULATION_ERROR = 1.01

Floats = NDArray[np.float64]


def log_e_value(t_statistic: float, n: int) -> float:
    """Logarithm of the evidence E_n against a mean.

    Args:
        t_statistic: (mean - hypothesis) / standard error; infinite if the error is zero.
        n: Number of values, at least two.
    """
    share = share_of_prior(n)
    if math.isinf(t_statistic):
        return 0.5 * math.log(share) - n / 2 * math.log(share)
    x = t_statistic * t_statistic / (n - 1)
    return 0.5 * math.log(share) + n / 2 * (math.log1p(x) - math.log1p(x * share))


def share_of_prior(n: int) -> float:
    """Weight of the prior among n values: g / (n + g)."""
    return PRIOR_PRECISION / (n + PRIOR_PRECISION)


def log_rise(n: int) -> float:
    """Logarithm of the factor by which the bound has risen at a block."""
    return 0.5 * math.log(max(1.0, n / USUAL_BLOCKS))


def chance_of_reaching(log_bound: float, first: int) -> float:
    """Probability under no difference that the evidence ever reaches a bound.

    Args:
        log_bound: Logarithm of m, which is the evidence over its block's rise.
        first: The first block that is looked at.
    """
    if log_bound <= _LOWEST:
        return 1.0
    by_ville = math.exp(-log_bound)
    if log_bound >= _HIGHEST:
        return by_ville
    bounds, chances = _tabulated(first)
    return min(1.0, by_ville, math.exp(float(np.interp(log_bound, bounds, chances))))


def log_bound_for(level: float, first: int) -> float:
    """Logarithm of the m that is reached with probability `level`: the inverse of `chance_of_reaching`."""
    bounds, chances = _tabulated(first)
    if math.log(level) <= chances[-1]:
        return -math.log(level)
    return min(-math.log(level), float(np.interp(math.log(level), chances[::-1], bounds[::-1])))


@functools.lru_cache(maxsize=32)
def _tabulated(first: int) -> tuple[Floats, Floats]:
    """Logarithms of m and of p(m).

    The same series serve all m: each adds 1/E_n to every m that it crosses for the first time at block n. The
    generator's seed is fixed, because the analysis of stored samples must give the same result every time.
    """
    bounds = np.arange(_LOWEST, _HIGHEST + _STEP / 2, _STEP)
    added = np.zeros(len(bounds) + 1)
    generator = np.random.default_rng(20_210_927)
    # Effects at equal steps of their distribution; the sign does not matter.
    effects = special.ndtri(0.5 + (np.arange(_SERIES) + 0.5) / (2 * _SERIES)) / math.sqrt(PRIOR_PRECISION)
    total, squares = np.zeros(_SERIES), np.zeros(_SERIES)
    crossed = np.zeros(_SERIES, dtype=int)
    for n in range(1, _LAST_BLOCK + 1):
        values = effects + generator.normal(size=len(effects))
        total, squares = total + values, squares + values * values
        if n < first:
            continue
        x = total * total / (n * squares - total * total)
        share = share_of_prior(n)
        evidence = 0.5 * math.log(share) + n / 2 * (np.log1p(x) - np.log1p(x * share))
        reached = np.searchsorted(bounds, evidence - log_rise(n), side="right")
        new = reached > crossed
        weights = np.exp(-evidence[new])
        np.add.at(added, crossed[new], weights)
        np.add.at(added, reached[new], -weights)
        crossed = np.maximum(crossed, reached)
        left = crossed < len(bounds)
        effects, total, squares, crossed = effects[left], total[left], squares[left], crossed[left]
    chances = np.cumsum(added)[:-1]
    waiting = np.cumsum(np.bincount(crossed, minlength=len(bounds) + 1))[:-1]
    chances += waiting * np.exp(-bounds - log_rise(_LAST_BLOCK))
    return bounds, np.log(_SIMULATION_ERROR * chances / _SERIES)
