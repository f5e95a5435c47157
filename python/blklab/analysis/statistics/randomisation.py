"""Inference from the random order alone: an interval from subset means, a test from sign patterns.

Under a constant effect the log ratios of a randomised plan are symmetric about it, whatever the noise, since
the order within each block was a coin toss. Each pattern of signs of the deviations is then as likely as any
other, so the test of a mean by all patterns is exact (Fisher, *The Design of Experiments*, 1935, section
21). The values that it does not reject lie between two of the means of all subsets of the ratios, counted
from either end (Hartigan, *Using subsample values as typical values*, Journal of the American Statistical
Association 64, 1969). Neither assumes that the noise is normal or has a variance.
"""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

MAX_EXACT_BLOCKS = 15
"""Up to here all subsets are enumerated (32,768); beyond, a fixed random sample of them is used."""
SAMPLED_SUBSETS = 50_000
_BITS_AT_ONCE = 1 << 17
"""Bits of subsets that are unpacked together: as numbers they fill a processor's cache, all subsets of a long
experiment would fill the memory."""
_FEW = 1_000
"""Up to so many blocks, subsets for several numbers of blocks are kept: 6 MB each at most."""

Floats = NDArray[np.float64]
Bits = NDArray[np.uint8]


class SubsetSums:
    """Sums over subsets of log ratios, with the test and the interval that they give."""

    def __init__(self, values: Floats) -> None:
        self._total = float(values.sum())
        self._exact = len(values) <= MAX_EXACT_BLOCKS
        if self._exact:
            sums = np.zeros(1)
            for value in values:
                sums = np.concatenate([sums, sums + value])
            # Without the empty subset, which has no mean; it is counted apart.
            self._sums, self._sizes = sums[1:], _all_sizes(len(values))
        else:
            packed, self._sizes = _sampled_subsets(len(values))
            self._sums = _sums_of_packed(packed, values)
        self._means = self._sums / self._sizes
        self._patterns = len(self._sums) + 1

    def p_difference(self) -> float:
        """Two-sided p value of a mean of zero.

        A pattern and its opposite give the same distance from zero. The observed pattern is one of the
        possible ones, so it counts too.
        """
        observed = abs(self._total) * (1 - 1e-12)
        exceeding = int(np.count_nonzero(np.abs(self._total - 2 * self._sums) >= observed))
        return (exceeding + 1) / self._patterns

    def p_equivalence(self, bound: float) -> float:
        """Larger p value of two one-sided tests that the mean lies within ±`bound`."""
        beyond = max(np.count_nonzero(self._means >= bound), np.count_nonzero(self._means <= -bound))
        return (int(beyond) + 1) / self._patterns

    def interval(self, confidence: float) -> tuple[float, float]:
        """The means that the test does not reject; check `reaches` first."""
        outside = int((1 - confidence) / 2 * self._patterns + 1e-9)
        places = [outside - 1, len(self._means) - outside]
        low, high = np.partition(self._means, places)[places]
        return float(low), float(high)


def reaches(nr_values: int, level: float) -> bool:
    """Whether this number of values has enough patterns for a two-sided test at a level."""
    return 2.0 ** (1 - nr_values) <= level * (1 + 1e-9)


@functools.lru_cache(maxsize=16)
def _all_sizes(n: int) -> Floats:
    """Sizes of all subsets but the empty one, in the order of the doubling above."""
    sizes = np.zeros(1)
    for _ in range(n):
        sizes = np.concatenate([sizes, sizes + 1])
    return sizes[1:]


def _sampled_subsets(n: int) -> tuple[Bits, Floats]:
    """Random subsets, one a row of packed bits, and their sizes.

    Fixed, because the analysis of stored samples must give the same result every time.
    """
    return _subsets_of_few(n) if n <= _FEW else _subsets_of_many(n)


def _drawn_subsets(n: int) -> tuple[Bits, Floats]:
    generator = np.random.default_rng(20_210_927)
    packed = np.empty((SAMPLED_SUBSETS, -(-n // 8)), dtype=np.uint8)
    sizes = np.empty(SAMPLED_SUBSETS)
    step = _subsets_at_once(n)
    for first in range(0, SAMPLED_SUBSETS, step):
        rows = slice(first, min(first + step, SAMPLED_SUBSETS))
        subsets = generator.integers(0, 2, size=(rows.stop - first, n), dtype=np.int8)
        sizes[rows] = subsets.sum(axis=1)
        packed[rows] = np.packbits(subsets.view(np.uint8), axis=1)
    some = sizes > 0
    return (packed, sizes) if some.all() else (packed[some], sizes[some])


_subsets_of_few = functools.lru_cache(maxsize=8)(_drawn_subsets)
_subsets_of_many = functools.lru_cache(maxsize=1)(_drawn_subsets)


def _sums_of_packed(packed: Bits, values: Floats) -> Floats:
    """The sum of the values over each subset."""
    step = _subsets_at_once(len(values))
    sums = [
        np.unpackbits(packed[first : first + step], axis=1, count=len(values)).astype(float) @ values
        for first in range(0, len(packed), step)
    ]
    return np.concatenate(sums)


def _subsets_at_once(n: int) -> int:
    """Rows of n bits to unpack together; a multiple of 16 adds each up as one large matrix would."""
    return max(16, _BITS_AT_ONCE // n // 16 * 16)
