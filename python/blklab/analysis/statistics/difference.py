"""The result of a comparison of two series, the same for every design."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass


@dataclass(frozen=True)
class Difference(ABC):
    """The mean log ratio of two series."""

    n: int
    """Samples that it rests on: blocks that have both values."""
    log_ratio: float
    standard_error: float
    """Of the mean log ratio, widened for serial correlation; not a number for a single sample."""
    p_difference: float
    """Two-sided: the ratio is not 1."""
    p_equivalence: float
    """Larger of two one-sided tests: the ratio is not within the margin."""

    @property
    def ratio(self) -> float:
        """Geometric mean of first over second."""
        return math.exp(self.log_ratio)

    @abstractmethod
    def log_interval(self, confidence: float) -> tuple[float, float] | None:
        """Two-sided interval for the log ratio; None for too few samples."""

    def ratio_interval(self, confidence: float) -> tuple[float, float] | None:
        """Two-sided interval for the ratio; None for too few samples."""
        found = self.log_interval(confidence)
        return None if found is None else (math.exp(found[0]), math.exp(found[1]))
