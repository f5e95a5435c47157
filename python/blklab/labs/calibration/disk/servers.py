"""Numbers of servers, or of commands in a batch, that a disk may have, and ways to place commands on servers.

Below the right number queues form, above it they vanish, so a derivative says little: each number is tried,
with the other figures following in a straight line. As many servers as there are commands, any of which may
take one, are much like far more on which commands are placed at random, so the other way is tried too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from blklab.labs.calibration.disk.parameters import MOST_PARALLEL, Floats, Placement, VirtualDisk
from blklab.labs.calibration.disk.search import MOST_STEPS, SEEDS, DiskProblem

_FACTORS = (1.05, 1.1, 1.2, 1.35, 1.5, 2.0, 3.0, 4.0)
"""Of the number that was found, to both sides."""
_GRID_FACTOR = 1.2
_MOST_SPARSE = 64
"""Times the commands in flight: with more servers, those placed at random hardly ever meet."""
_QUICK_SEEDS, _SURE_SEEDS = SEEDS[:1], SEEDS[:4]
_LOOKED_AT = 4
"""Numbers of servers of the other placement that are simulated with more seeds."""


@dataclass(frozen=True)
class Servers:
    """Findings."""

    low: int
    high: int | None
    """None: any number above would do as well."""
    undecided: bool
    """Whether commands might be placed in the other way."""
    least: Floats
    """The least entries of the vector that go with any of these numbers, and the largest."""
    largest: Floats
    better: VirtualDisk | None = None
    """A disk that places them in the other way, if that is clearly nearer to what was measured."""


def likely_servers(
    problem: DiskProblem, errors: Floats, information: Floats, weighted: Floats, certain: float
) -> Servers:
    """Numbers of servers, and placements, that the measurements do not rule out.

    Args:
        problem: It begins at the best vector.
        errors: Standard errors of the rows.
        information: Inverse of the vector's covariance.
        weighted: Derivatives of the rows by the vector's entries, in standard errors.
        certain: By so much a misfit must rise for a number to be ruled out.
    """
    trial = _Trial(problem, errors, information, weighted)
    own = problem.like.placement
    whole = round(math.exp(problem.start[trial.index]))
    if problem.like.in_batches:
        # Larger batches than there are commands are all alike.
        whole = min(whole, _in_flight(problem))
    low, high, tried = _walked(trial, whole, certain)

    def found(*, undecided: bool, better: VirtualDisk | None = None) -> Servers:
        vectors = np.array([problem.start, *tried])
        return Servers(low, high, undecided, vectors.min(axis=0), vectors.max(axis=0), better)

    if problem.like.in_batches or (whole == 1 and low == high == 1):
        # Batches are not placed, and a single server is any server.
        return found(undecided=False)
    other: Placement = "random" if own == "any" else "any"
    grid = _grid(problem, other)
    quick = {number: trial.misfit(number, other, _QUICK_SEEDS) for number in grid}
    nearest = sorted(grid, key=quick.__getitem__)[:_LOOKED_AT]
    sure = {number: trial.misfit(number, other, _SURE_SEEDS) for number in nearest}
    best = min(sure, key=sure.__getitem__)
    beyond = sure[best] - trial.misfit(whole, own, _SURE_SEEDS)
    if beyond > certain:
        return found(undecided=False)
    # Few seeds compare the best number with that of the own placement, one its neighbours with it.
    likely = [number for number in grid if quick[number] - quick[best] + max(0.0, beyond) <= certain]
    likely = sorted({best, *likely})
    tried += [trial.vector(number, other, _QUICK_SEEDS) for number in likely]
    low = min(low, likely[0])
    high = None if high is None or likely[-1] == grid[-1] else max(high, likely[-1])
    return found(undecided=True, better=trial.disk(best, other) if beyond < -certain else None)


def _grid(problem: DiskProblem, placement: Placement) -> list[int]:
    """Numbers of servers to try, up to one from which on more make no difference."""
    in_flight = _in_flight(problem)
    most = in_flight if placement == "any" else min(MOST_PARALLEL, _MOST_SPARSE * in_flight)
    found = [1]
    while found[-1] < most:
        found.append(min(most, max(found[-1] + 1, round(found[-1] * _GRID_FACTOR))))
    return found


def _in_flight(problem: DiskProblem) -> int:
    """The commands of the deepest load that the disk takes at once."""
    return min(max(load.depth for load, _ in problem.rows), problem.forward.facts.queues.depth)


def _walked(trial: _Trial, whole: int, certain: float) -> tuple[int, int | None, list[Floats]]:
    """The least and the largest number that are not ruled out, under the placement that was found.

    With the vectors that go with them.
    """
    own = trial.problem.like.placement
    at_best = trial.misfit(whole, own, _QUICK_SEEDS)

    vectors: list[Floats] = []

    def possible(number: int) -> bool:
        if trial.misfit(number, own, _QUICK_SEEDS) - at_best > certain:
            return False
        vectors.append(trial.vector(number, own, _QUICK_SEEDS))
        return True

    low, high = whole, None
    for factor in _FACTORS:
        fewer = min(whole - 1, math.floor(whole / factor))
        if fewer < 1 or not possible(fewer):
            break
        low = fewer
    above = whole
    for factor in _FACTORS:
        more = max(whole + 1, math.ceil(whole * factor))
        if not possible(more):
            high = above
            break
        above = more
    return low, high, vectors


class _Trial:
    """Disks with other servers, whose other figures take up what they can of the misfit."""

    def __init__(self, problem: DiskProblem, errors: Floats, information: Floats, weighted: Floats) -> None:
        self.problem = problem
        self.index = problem.layout.names.index("parallel")
        self._errors = errors
        self._others = [number for number in range(len(problem.start)) if number != self.index]
        self._inverse = np.linalg.inv(information[np.ix_(self._others, self._others)])
        self._weighted = weighted[:, self._others]

    def misfit(self, number: int, placement: Placement, seeds: Sequence[int]) -> float:
        """The sum of squares that is left."""
        residuals, taken = self._residuals(number, placement, seeds)
        return float(residuals @ residuals - taken @ self._inverse @ taken)

    def vector(self, number: int, placement: Placement, seeds: Sequence[int]) -> Floats:
        """The number, with the other figures where they leave least."""
        _, taken = self._residuals(number, placement, seeds)
        vector = self._with(number)
        most = MOST_STEPS * self.problem.layout.steps()[self._others]
        vector[self._others] += np.clip(self._inverse @ taken, -most, most)
        low, high = self.problem.layout.bounds()
        clipped: Floats = np.clip(vector, low, high)
        return clipped

    def disk(self, number: int, placement: Placement) -> VirtualDisk:
        """Such a disk."""
        like = replace(self.problem.like, placement=placement)
        return self.problem.layout.disk(self.vector(number, placement, _SURE_SEEDS), like)

    def _with(self, number: int) -> Floats:
        vector: Floats = self.problem.start.copy()
        vector[self.index] = math.log(number)
        return vector

    def _residuals(self, number: int, placement: Placement, seeds: Sequence[int]) -> tuple[Floats, Floats]:
        like = replace(self.problem.like, placement=placement)
        predicted = self.problem.by_seed(self._with(number), seeds, like=like).mean(axis=0)
        residuals = (self.problem.measured - predicted) / self._errors
        return residuals, self._weighted.T @ residuals
