"""Differences between schedulers that take turns: a test of sign symmetry that may be checked at any time.

In each round every scheduler has one slot, and the order is drawn anew. If the slots of `first` are like r
times the slots of `second`, then in each round

    x(r) = (first / √r - second · √r) / scale

would have had the opposite sign, and the same size, had the two slots changed places, and that was a fair
coin toss, whatever the disk did before and however its speed wanders. With a scale that is known before the
round, and for any strength c > 0,

    E_n(c) = ∏ exp(c·x) / cosh(c·x)

is then a martingale that starts at 1 (de la Peña, *A general class of exponential inequalities for
martingales and ratios*, 1999; Ramdas, Ruf, Larsson and Koolen, *Admissible anytime-valid sequential inference
must rely on nonnegative martingales*, 2020). So is its weighted mean over several strengths, and it ever
reaches m with probability 1/m at most (Ville's inequality): no distribution, no independence and no number of
rounds is assumed. x falls as r rises, so the evidence that the ratio is above r falls too: a test of r = 1
also tests every ratio below 1, and the ratios that are not rejected form an interval.

A disk stalls now and then, under whichever scheduler, and that hides differences. So in the evidence a round
counts with at most `LIMIT` robust standard deviations, which costs none of the above. But a scheduler may
also be the cause of its stalls: then its slots are not like the other's times r, and the ratio that counts is
that of the means. The estimate is therefore Σ x(r) = 0 without that limit, a ratio of arithmetic means in
which rounds count less while the disk is noisy, and a claim must pass Student's t test about it too (widened
for serial correlation). The interval covers both that of the evidence and that of the t test. Where slots
are alike the latter is the narrower one, and changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from blklab.analysis.statistics.difference import Difference
from blklab.analysis.statistics.intervals import t_quantile, t_upper_tail
from blklab.analysis.statistics.noise import MAD_TO_DEVIATION
from blklab.analysis.statistics.serial import ROUNDING, widening

WARM_UP = 4
"""The first rounds show how large differences are. In the evidence they count by their sign alone."""
SCALE_ROUNDS = 32
"""The scale is that of this many rounds before."""
LIMIT = 4.0
"""Most robust standard deviations with which a round counts in the evidence."""
STRENGTHS = np.append(np.geomspace(0.1, 1.0, 7), 8.0)
"""The strengths c. A mean difference of c robust standard deviations a round is found fastest with c. The
last is for gross differences: a round that agrees doubles its evidence, and one that does not ends it."""
WEIGHTS = np.append(np.full(7, 1 / 14), 1 / 2)
"""Of the strengths in the mean. A gross difference is settled in hardly more rounds than the order permits,
and small ones take twice the evidence."""
SEARCH_COST = 2.4
"""Logarithm of the evidence that is lost because the best strength is not known; for predictions only."""

_LOG_WEIGHTS = np.log(WEIGHTS)
_SMALLEST_SCALE = 1e-3
"""Relative to the values: in a simulation that repeats itself, differences have no scatter."""
_SHARE_OF_MEAN = 0.25
"""A scale is at least this share of the mean size of differences. Slots of few I/Os are often exactly equal,
and a few rounds after many such would otherwise outweigh all others."""
_WIDEST = 20.0
"""Logarithm of the largest ratio that is looked for."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SwitchbackDifference(Difference):
    """A ratio of means whose p values and interval hold for any stopping rule."""

    first: Floats = field(repr=False, compare=False)
    """Values per round, divided by the round's scale; the first ones by that of the round after them."""
    second: Floats = field(repr=False, compare=False)

    def log_interval(self, confidence: float) -> tuple[float, float] | None:
        """Two-sided interval for the log ratio, at whichever round the experiment stops."""
        if len(self.first) < 2:
            return None
        level = 1 - confidence
        wanted = math.log(2 / level)
        low = _root(lambda ratio: _log_evidence(self._x(ratio))[0] - wanted, self.log_ratio, -1)
        high = _root(lambda ratio: wanted - _log_evidence(self._x(ratio))[1], self.log_ratio, 1)
        if low is None or high is None:
            return None
        half = t_quantile(1 - level / 2, len(self.first) - 1) * self.standard_error
        return min(low, self.log_ratio - half), max(high, self.log_ratio + half)

    def _x(self, log_ratio: float) -> Floats:
        return _standardised(self.first, self.second, log_ratio)


def switchback_difference(
    first: Sequence[float], second: Sequence[float], *, margin: float
) -> SwitchbackDifference | None:
    """Compares the slots of two schedulers, after any number of rounds.

    Args:
        first: One value per round, 0 or more, in the order of the rounds.
        second: The other's values in the same rounds.
        margin: Ratios between 1/(1+margin) and 1+margin count as equal.

    Returns:
        None if one of the two has no value above 0.
    """
    one, other = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if not (one.any() and other.any()):
        return None
    n = len(one)
    bound = math.log1p(margin)
    if n <= WARM_UP + 1:
        ratio = math.log(np.sum(first) / np.sum(second))
        return SwitchbackDifference(n, ratio, math.nan, 1.0, 1.0, one[:0], other[:0])
    scales = predictable_scales(one, other)
    scales = np.concatenate([np.full(WARM_UP, scales[0]), scales])
    one, other = one / scales, other / scales
    log_ratio = math.log(one.sum() / other.sum())
    error = _standard_error(one, other, log_ratio)
    above, below = _p_values(_standardised(one, other, 0.0))
    from_below, _ = _p_values(_standardised(one, other, -bound))
    _, from_above = _p_values(_standardised(one, other, bound))
    of_means = _tail(abs(log_ratio), error, len(one))
    return SwitchbackDifference(
        n=n,
        log_ratio=log_ratio,
        standard_error=error,
        # Only the side on which the estimate lies: a claim names a direction.
        p_difference=min(1.0, 2 * max(above if log_ratio > 0 else below, of_means)),
        p_equivalence=max(from_below, from_above, _tail(bound - abs(log_ratio), error, len(one))),
        first=one,
        second=other,
    )


def fewest_rounds(nr_questions: int, level: float) -> int:
    """Rounds needed before any claim: a round can at most double the evidence, and a sign gives less."""
    of_signs = math.log2(float(np.sum(WEIGHTS * (2 / (1 + np.exp(-2 * STRENGTHS))) ** WARM_UP)))
    return WARM_UP + max(2, math.ceil(math.log2(2 * nr_questions / level) - of_signs))


def standard_errors_for(level: float) -> float:
    """Distance, in standard errors, that usually suffices for a one-sided claim at a level."""
    return math.sqrt(2 * (SEARCH_COST - math.log(level)))


def predictable_scales(first: Floats, second: Floats) -> Floats:
    """The size of differences as the rounds before show it, for each round after the first ones.

    It must not depend on the round itself, nor on the ratio that is tested.
    """
    ones, others = _windows(first), _windows(second)
    middle_one, middle_other = _medians(ones), _medians(others)
    known = (middle_one > 0) & (middle_other > 0)
    root = np.sqrt(np.divide(middle_one, middle_other, out=np.ones_like(middle_one), where=known))
    differences = np.abs(ones / root[:, None] - others * root[:, None])
    scales = MAD_TO_DEVIATION * _medians(differences)
    scales = np.maximum(scales, _SHARE_OF_MEAN * np.nanmean(differences, axis=1))
    levels = np.fmax.reduce(ones / root[:, None] + others * root[:, None], axis=1)
    smallest = _SMALLEST_SCALE * np.where(levels > 0, levels, 1.0)
    floored: Floats = np.maximum(scales, smallest)
    return floored


def _windows(values: Floats) -> Floats:
    """For each round after the first ones the values before it, filled up with nan: (rounds, window)."""
    padded = np.concatenate([np.full(SCALE_ROUNDS - WARM_UP, np.nan), values[:-1]])
    return np.lib.stride_tricks.sliding_window_view(padded, SCALE_ROUNDS)


def _medians(rows: Floats) -> Floats:
    """Median of each row; nan stands for no value."""
    ordered = np.sort(rows, axis=1)  # nan last
    counts = np.sum(~np.isnan(rows), axis=1)
    line = np.arange(len(rows))
    medians: Floats = (ordered[line, (counts - 1) // 2] + ordered[line, counts // 2]) / 2
    return medians


def _standardised(first: Floats, second: Floats, log_ratio: float) -> Floats:
    """x(r), limited; the sign of it in the first rounds, whose scale is not known before them."""
    root = math.exp(log_ratio / 2)
    x = np.clip(first / root - second * root, -LIMIT, LIMIT)
    x[:WARM_UP] = np.sign(x[:WARM_UP])
    return x


def _log_evidence(x: Floats) -> tuple[float, float]:
    """Logarithms of the evidence so far that the ratio is above r, and below it."""
    steps = np.log1p(np.exp(-2 * np.multiply.outer(STRENGTHS, x))).sum(axis=1)
    above = len(x) * math.log(2) - steps
    below = above - 2 * STRENGTHS * x.sum()
    return _log_sum(above + _LOG_WEIGHTS), _log_sum(below + _LOG_WEIGHTS)


def _log_sum(logs: Floats) -> float:
    most = float(logs.max())
    return most + math.log(np.exp(logs - most).sum())


def _p_values(x: Floats) -> tuple[float, float]:
    """One-sided p values, the smallest of all looks: the ratio is above r, and below it."""
    above = np.cumsum(math.log(2) - np.log1p(np.exp(-2 * np.multiply.outer(STRENGTHS, x))), axis=1)
    below = above - 2 * np.multiply.outer(STRENGTHS, np.cumsum(x))
    return _smallest_p(above), _smallest_p(below)


def _smallest_p(logs: Floats) -> float:
    logs = logs + _LOG_WEIGHTS[:, None]
    most = logs.max(axis=0)
    evidence = most + np.log(np.exp(logs - most).sum(axis=0))
    return min(1.0, math.exp(-float(evidence.max())))


def _standard_error(first: Floats, second: Floats, log_ratio: float) -> float:
    """Of the logarithm of the ratio of means."""
    root = math.exp(log_ratio / 2)
    x = first / root - second * root
    level = float((first / root + second * root).sum()) / 2
    return math.sqrt(float((x * x).sum())) / level * widening(x.tolist())


def _tail(distance: float, error: float, n: int) -> float:
    """One-sided p value of Student's t."""
    if error == 0.0:
        return 0.0 if distance > ROUNDING else 1.0
    return t_upper_tail(distance / error, n - 1)


def _root(falling: Callable[[float], float], start: float, side: int) -> float | None:
    """Where a falling function is 0, looked for from `start` to one side; None if nowhere.

    `start` itself if the 0 lies on its other side: the evidence limits how much a round counts and may reject
    the ratio of means. The method of Illinois: false position, with the weight of an end that stays halved.
    """
    near, at_near = start, falling(start)
    if at_near * side <= 0:
        return start
    step = 0.02
    while True:
        far = start + side * step
        at_far = falling(far)
        if at_far * side <= 0:
            break
        near, at_near = far, at_far
        step *= 2
        if step > _WIDEST:
            return None
    for _ in range(60):
        if abs(far - near) < 1e-7 or at_far == 0:
            break
        middle = far - at_far * (far - near) / (at_far - at_near) if at_far != at_near else (near + far) / 2
        at_middle = falling(middle)
        if at_middle * at_far < 0:
            near, at_near = far, at_far
        else:
            at_near /= 2
        far, at_far = middle, at_middle
    return far
