"""The search for a flash drive's figures: least squares with the simulator under the same loads.

Nearly all loads are free of chance, in the simulator as on its disks, so the fit is as exact as they are
repeatable.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import lsq_linear

from blklab.labs.calibration.disk.flash.figures import FlashDrive, FlashLayout, Floats
from blklab.labs.calibration.disk.flash.loads import LoadNumber
from blklab.labs.calibration.disk.ground import DiskMeasurement
from blklab.labs.calibration.disk.model import Model

SEEDS = range(11, 15)
_FIRST_SEED = SEEDS[:1]
_CHANCE_SEEDS = range(101, 125)
"""Of simulations that tell how much chance a drawn load has: a few numbers may agree by chance."""
_FAR_LARGER = 2.0
"""Times the scatter that chance explains, for the scatter of a few repetitions to count instead."""
_LEAST_ERROR = 3e-4
_COUNTED = 1.0
"""I/Os by which a run's count is uncertain: it is whole, and so are the steps in which buffers fill."""
_LINES, _PLACES, _CURVE = 3, 7, 2
"""Lines through a place, places on each, and the degree of a smooth course along them."""
_REACH = 0.3
"""Of the steps of numerical derivatives, to either side."""
_TOLERATED = 3.0
"""Standard errors beyond which a residual counts less."""
_CALLS = 10
_TRIES = 5
_TOLERANCE = 1e-3
_FIRST_DAMPING = 0.01
_MOST_STEPS = 30.0
"""Of the numerical derivative's, in one step of the search."""


@dataclass(frozen=True)
class Observed:
    """A row's number, as the logarithm of its mean, and its standard error."""

    row: LoadNumber
    log: float
    error: float
    count: int
    """Repetitions."""


def observed(row: LoadNumber, measurements: Sequence[DiskMeasurement]) -> Observed:
    """A row from repetitions of its load."""
    logs = [_log(row, one) for one in measurements]
    scatter = float(np.std(logs, ddof=1)) if len(logs) > 1 else 0.0
    counted = 0.0
    if row.quantity == "iops" and not row.drawn:
        counted = _COUNTED / max(1, measurements[0].ios)
    error = math.hypot(scatter / math.sqrt(len(logs)), counted, _LEAST_ERROR)
    return Observed(row, float(np.mean(logs)), error, len(logs))


def _log(row: LoadNumber, found: DiskMeasurement) -> float:
    value = found.iops if row.quantity == "iops" else found.mean_ns
    return math.log(value or found.p50_ns)


class FlashProblem:
    """The rows and what the simulator has for them."""

    def __init__(
        self,
        rows: Sequence[Observed],
        layout: FlashLayout,
        like: FlashDrive,
        model: Model,
        known: Mapping[str, float],
    ) -> None:
        self.rows = list(rows)
        self.layout = layout
        self.like = like
        self._model = model
        self.model_error = 0.0
        self.measured = np.array([one.log for one in rows])
        self.priors = np.array(
            [known.get(name, prior) for name, prior in zip(layout.names, layout.priors(), strict=True)]
        )
        self.start = layout.vector(like)
        for one in rows:
            model.runtimes_us[one.row.load.name] = one.row.runtime_us
        self.own_errors = np.array([self._own_error(one, like) for one in rows])

    def reach(self, vector: Floats) -> None:
        """Estimates the errors anew at a place near the best one: both chance and steps depend on it.

        The drive counts in whole pages and I/Os, so what the simulator has for a row goes up and down by
        steps as figures change. These are no error of what was measured, but of the search for it.
        """
        drive = self.layout.drive(vector, self.like)
        errors = np.array([self._own_error(one, drive) for one in self.rows])
        drawn = np.array([one.row.drawn for one in self.rows])
        self.own_errors = np.where(drawn, errors, np.hypot(errors, self._steps_at(vector)))

    def _steps_at(self, vector: Floats) -> Floats:
        """Standard deviation of each row about a smooth course, on lines through a place."""
        low, high = self.layout.bounds()
        directions = np.random.default_rng(_FIRST_SEED[0]).normal(size=(_LINES, len(vector)))
        places = np.linspace(-1, 1, _PLACES)
        squares = np.zeros(len(self.rows))
        for direction in directions:
            step = _REACH * self.layout.steps() * direction
            on_line = np.array([self._once(np.clip(vector + place * step, low, high)) for place in places])
            smooth = np.polynomial.polynomial.polyfit(places, on_line, _CURVE)
            squares += np.sum((on_line - np.polynomial.polynomial.polyval(places, smooth).T) ** 2, axis=0)
        deviations: Floats = np.sqrt(squares / (_LINES * (_PLACES - _CURVE - 1)))
        return deviations

    def _own_error(self, one: Observed, drive: FlashDrive) -> float:
        """Standard error of a row's misfit: of what was measured, and of the simulations' mean."""
        if not one.row.drawn:
            return one.error
        runs = self._model.measured(one.row.device(drive), [one.row.load], _CHANCE_SEEDS)[0]
        chance = float(np.std([_log(one.row, run) for run in runs], ddof=1))
        by_chance = max(chance / math.sqrt(one.count), _LEAST_ERROR)
        measured = one.error if one.error > _FAR_LARGER * by_chance else by_chance
        return math.hypot(measured, chance / math.sqrt(len(SEEDS)))

    def predicted(self, drive: FlashDrive, seeds: Sequence[int]) -> Floats:
        """The rows' logarithms: a line for each seed, alike where nothing is drawn."""
        found: list[list[float]] = []
        for one in self.rows:
            used = seeds if one.row.drawn else seeds[:1]
            runs = self._model.measured(one.row.device(drive), [one.row.load], used)[0]
            logs = [_log(one.row, run) for run in runs]
            found.append(logs * (len(seeds) // len(logs)))
        by_seed: Floats = np.array(found).T
        return by_seed

    @property
    def errors(self) -> Floats:
        """Standard errors, with the model's own."""
        errors: Floats = np.hypot(self.own_errors, self.model_error)
        return errors

    def residuals(self, vector: Floats) -> Floats:
        """Of rows and priors, in standard deviations."""
        drive = self.layout.drive(vector, self.like)
        misfit = (self.predicted(drive, SEEDS).mean(axis=0) - self.measured) / self.errors
        residuals: Floats = np.concatenate([misfit, (vector - self.start) / self.priors])
        return residuals

    def cost(self, vector: Floats) -> float:
        """Half the sum of squares, of which large ones count less."""
        squares = (self.residuals(vector) / _TOLERATED) ** 2
        return float(_TOLERATED**2 * np.sum(np.sqrt(1 + squares) - 1))

    def slopes(self, vector: Floats, free: Sequence[int]) -> Floats:
        """Derivatives of the rows by some entries, under one seed: with it most of the chance cancels."""
        low, high = self.layout.bounds()
        steps = self.layout.steps()
        columns = []
        for index in free:
            up, down = vector.copy(), vector.copy()
            up[index] = min(vector[index] + steps[index], high[index])
            down[index] = max(vector[index] - steps[index], low[index])
            difference = self._once(up) - self._once(down)
            columns.append(difference / (up[index] - down[index]))
        return np.column_stack(columns)

    def _once(self, vector: Floats) -> Floats:
        line: Floats = self.predicted(self.layout.drive(vector, self.like), _FIRST_SEED)[0]
        return line

    def jacobian(self, vector: Floats, free: Sequence[int]) -> Floats:
        """The derivative of the residuals by some entries."""
        return np.vstack(
            [self.slopes(vector, free) / self.errors[:, None], np.diag(1 / self.priors)[:, list(free)]]
        )


def descended(
    problem: FlashProblem, vector: Floats, *, free: Sequence[int] | None = None, calls: int = _CALLS
) -> Floats:
    """Levenberg and Marquardt's method, with bounds for figures and for steps.

    SciPy's own shrinks its steps near a bound, which the link's time for a command often is.

    Args:
        problem: Rows to come near to.
        vector: Where to begin.
        free: Entries to change; None for all.
        calls: Derivatives at most.
    """
    kept = list(range(len(vector)) if free is None else free)
    low, high = (bound[kept] for bound in problem.layout.bounds())
    most = _MOST_STEPS * problem.layout.steps()[kept]
    cost, damping = problem.cost(vector), _FIRST_DAMPING
    for _ in range(calls):
        residuals = problem.residuals(vector)
        weights = weights_of(residuals)
        slopes = problem.jacobian(vector, kept) * weights[:, None]
        lengths = np.sqrt(np.sum(slopes**2, axis=0))
        for _ in range(_TRIES):
            now = vector[kept]
            step = lsq_linear(
                np.vstack([slopes, np.diag(damping * lengths)]),
                np.concatenate([-weights * residuals, np.zeros(len(kept))]),
                bounds=(np.maximum(low - now, -most) - 1e-12, np.minimum(high - now, most) + 1e-12),
            ).x
            tried = vector.copy()
            tried[kept] = np.clip(now + step, low, high)
            reached = problem.cost(tried)
            if reached < cost:
                break
            damping *= 4
        else:
            return vector
        vector, before, cost, damping = tried, cost, reached, damping / 4
        if before - cost < _TOLERANCE * (1 + cost):
            break
    return vector


def weights_of(residuals: Floats) -> Floats:
    """Square roots of the weights of residuals: in `FlashProblem.cost` large ones count less."""
    weights: Floats = (1 + (residuals / _TOLERATED) ** 2) ** -0.25
    return weights
