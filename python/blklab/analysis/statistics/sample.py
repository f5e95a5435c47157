"""A sample with the moments that comparisons need, each computed once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from blklab.analysis.statistics.intervals import standard_error


class Sample:
    """Values in any order, at least one."""

    def __init__(self, values: Sequence[float]) -> None:
        self.values = np.asarray(values, dtype=float)
        self.n = len(self.values)

    @cached_property
    def mean(self) -> float:
        """Arithmetic mean."""
        return float(self.values.mean())

    @cached_property
    def variance(self) -> float:
        """Of at least two values, with n - 1."""
        return float(self.values.var(ddof=1))

    @cached_property
    def standard_error(self) -> float:
        """Of the mean of at least two values."""
        return standard_error(self.values)

    @cached_property
    def fourth_powers(self) -> float:
        """Sum of the fourth powers of the distances from the trimmed mean, for Bonett's kurtosis."""
        return float(((self.values - self._trimmed_mean()) ** 4).sum())

    def _trimmed_mean(self) -> float:
        """Mean without the share 1/(2√(n - 4)) at either end."""
        share = min(0.49, 1 / (2 * math.sqrt(max(1, self.n - 4))))
        cut = int(share * self.n)
        return float(np.sort(self.values)[cut : self.n - cut].mean())
