"""Intervals of figures that can replace each other.

Less of fast cells and more of the buffer, or a faster program and a slower flush, may give nearly the same
numbers. The misfit then has a valley, which is bent, and has steps since the drive counts in whole pages:
derivatives at one place say little of another. So one figure after the other is moved, and those that can
replace it follow, until the measurements rule it out. If a better place is met, the search restarts there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from blklab.labs.calibration.disk.fit import TWO_SIDED
from blklab.labs.calibration.disk.flash.figures import Floats
from blklab.labs.calibration.disk.flash.search import FlashProblem, descended, weights_of

_MOVED = ("slc_program", "slc_bytes", "buffer_bytes", "flush", "fold_rate")
_FOLLOWING = (*_MOVED, "program", "suspend")
_CERTAIN = TWO_SIDED**2 / 2
"""By so much the cost rises to the ends of an interval."""
_BETTER = 0.5
"""Of the cost: what is less is no better place."""
_GAINED = 0.1
"""Of the cost: with less gained, the others have followed far enough."""
_MOST_RESTARTS = 4
_MOST_STEPS = 12
_GROWTH = 1.7
_MOST_FIRST = 15.0
"""Steps of the numerical derivative that the first step along a valley is worth at most."""
_CORRECTIONS = 3
_CLEARLY = 3.0
"""Times the limit: a place beyond it ends the way at once."""
_HALVINGS, _MOST_HALVINGS = 2, 6
_NEAR = 4.0
"""Times the limit up to which a place that is ruled out is near enough to interpolate."""


@dataclass(frozen=True)
class Walked:
    """The best place, and what lies around it."""

    vector: Floats
    intervals: dict[str, tuple[float, float]]
    """Entries of the vector that are not ruled out at 95 %."""


def walked(problem: FlashProblem, vector: Floats) -> Walked:
    """Moves each figure of a valley until it is ruled out.

    Args:
        problem: What was measured.
        vector: The place that the search has found.
    """
    names = problem.layout.names
    free = [index for index, name in enumerate(names) if name in _FOLLOWING]
    moved = [index for index in free if names[index] in _MOVED]
    for restarts_left in range(_MOST_RESTARTS, -1, -1):
        # Without restarts left it goes on over better places: they are within the intervals.
        walk = _Walk(problem, vector, free, restarts=restarts_left > 0)
        for index in moved:
            walk.move(index)
            if walk.better is not None:
                break
        if walk.better is None:
            break
        vector = descended(problem, walk.better, free=free)
    low, high = walk.low, walk.high
    return Walked(vector, {names[index]: (float(low[index]), float(high[index])) for index in moved})


class _Walk:
    """From the best place."""

    def __init__(self, problem: FlashProblem, best: Floats, free: Sequence[int], *, restarts: bool) -> None:
        self.better: Floats | None = None
        self._restarts = restarts
        self._problem = problem
        self._best = best
        self._cost = problem.cost(best)
        self._free = list(free)
        self._jacobian = problem.jacobian(best, free)
        self._covariance = np.linalg.inv(self._jacobian.T @ self._jacobian)
        self.low, self.high = best.copy(), best.copy()
        """Of all places that are not ruled out. What one figure's way misses, another's may meet."""

    def move(self, index: int) -> None:
        """Moves an entry both ways, until it is ruled out or a better place is met."""
        for sign in (-1.0, 1.0):
            if self.better is None:
                end = self._end(index, sign)
                self.low[index] = min(self.low[index], end)
                self.high[index] = max(self.high[index], end)

    def _end(self, index: int, sign: float) -> float:
        """The last value of an entry that is not ruled out."""
        position = self._free.index(index)
        deviation = math.sqrt(self._covariance[position, position])
        length = min(deviation, _MOST_FIRST * self._problem.layout.steps()[index])
        # Where the others go if the valley is straight.
        direction = np.zeros(len(self._best))
        direction[self._free] = self._covariance[:, position] / self._covariance[position, position]
        low, high = (bound[index] for bound in self._problem.layout.bounds())
        at, rise = self._best, 0.0
        outside: tuple[Floats, float] | None = None
        for _ in range(_MOST_STEPS):
            entry = float(np.clip(at[index] + sign * length, low, high))
            if entry == at[index]:
                break
            tried, above = self._reached(at, entry, direction, index)
            if self.better is not None:
                return entry
            length *= _GROWTH
            if above <= _CERTAIN:
                direction = (tried - at) / (tried[index] - at[index])
                at, rise, outside = tried, max(rise, above), None
                continue
            if outside is not None or above > _CLEARLY * _CERTAIN:
                return self._between(at, rise, *(outside or (tried, above)), index)
            # Whole I/Os and pages make steps: a little further on it may be met better.
            outside = tried, above
        return float(at[index])

    def _between(self, inside: Floats, rise: float, outside: Floats, above: float, index: int) -> float:
        """Halves between a place that is not ruled out and one that is."""
        for number in range(_MOST_HALVINGS):
            if number >= _HALVINGS and above < _NEAR * _CERTAIN:
                break
            direction = (outside - inside) / (outside[index] - inside[index])
            tried, reached = self._reached(
                inside, float(inside[index] + outside[index]) / 2, direction, index
            )
            if self.better is not None:
                break
            if reached > _CERTAIN:
                outside, above = tried, reached
            else:
                inside, rise = tried, max(rise, reached)
        # Roots of the cost grow about in proportion to the distance.
        near, far, limit = (math.sqrt(max(0.0, part)) for part in (rise, above, _CERTAIN))
        part = (limit - near) / (far - near)
        return float(inside[index] + part * (outside[index] - inside[index]))

    def _reached(self, at: Floats, entry: float, direction: Floats, index: int) -> tuple[Floats, float]:
        """The best place with an entry that is found from a place nearby, and how much its cost is above."""
        moved = entry - at[index]
        tried, above = self._following(at + moved * direction, index)
        if above <= _CERTAIN:
            return tried, above
        # All at once may run into a step of whole pages, one at a time need not.
        low, high = self._problem.layout.bounds()
        for other in self._others(index):
            one = at.copy()
            one[index] = entry
            one[other] += moved * self._traded(index, other)
            one = np.clip(one, low, high)
            reached = self._noted(one)
            if reached < above:
                tried, above = one, reached
        return self._following(tried, index) if above > _CERTAIN else (tried, above)

    def _traded(self, index: int, other: int) -> float:
        """By how much another entry alone makes up for one."""
        column, beside = (self._jacobian[:, self._free.index(one)] for one in (index, other))
        return -float(column @ beside) / float(beside @ beside)

    def _others(self, index: int) -> list[int]:
        return [other for other in self._free if other != index]

    def _following(self, vector: Floats, index: int) -> tuple[Floats, float]:
        """The others follow an entry; with it, how much the cost is above the best."""
        problem = self._problem
        others = self._others(index)
        columns = [self._free.index(other) for other in others]
        low, high = problem.layout.bounds()
        vector = np.clip(vector, low, high)
        above = self._noted(vector)
        for _ in range(_CORRECTIONS):
            residuals = problem.residuals(vector)
            weights = weights_of(residuals)
            slopes = self._jacobian[:, columns] * weights[:, None]
            step = np.linalg.lstsq(slopes, -weights * residuals, rcond=None)[0]
            tried = vector.copy()
            tried[others] = vector[others] + step
            tried = np.clip(tried, low, high)
            reached = self._noted(tried)
            if reached >= above:
                break
            gained, vector, above = above - reached, tried, reached
            if above < _CERTAIN and gained < _GAINED:
                break
        return vector, above

    def _noted(self, vector: Floats) -> float:
        """The cost above the best; the place is kept if it is not ruled out."""
        above = self._problem.cost(vector) - self._cost
        if above < -_BETTER and self._restarts:
            self.better = vector
        if above <= _CERTAIN:
            self.low, self.high = np.minimum(self.low, vector), np.maximum(self.high, vector)
        return above
