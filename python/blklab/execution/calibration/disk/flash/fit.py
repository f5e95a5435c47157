"""Fits the figures of a flash drive: least squares with the simulator under the same loads for the same time.

Nearly all loads are free of chance, in the simulator as on its disks, so the fit is as exact as they are
repeatable.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq, lsq_linear

from blklab.execution.calibration.disk.flash.figures import FlashDrive, Floats, Layout
from blklab.execution.calibration.disk.flash.loads import Row
from blklab.execution.calibration.disk.ground import Measurement
from blklab.execution.calibration.disk.model import Model

_SEEDS = range(11, 15)
_FIRST_SEED = _SEEDS[:1]
_LEAST_ERROR = 3e-4
_COUNTED = 1.0
"""I/Os by which a run's count is uncertain: it is whole, and so are the steps in which buffers fill."""
_TOLERATED = 3.0
"""Standard errors beyond which a residual counts less."""
_SHORT_US = 200_000
"""Longer loads, which take longer to simulate, wait until the search has begun."""
_CALLS = 10
_TRIES = 5
_TOLERANCE = 1e-3
_FIRST_DAMPING = 0.01
_MOST_STEPS = 30.0
"""Of the numerical derivative's, in one step of the search."""
_COMMAND_PARTS = (0.0, 0.1, 0.25, 0.5, 0.8)
"""Of the time between deep writes, for the link's time for a command, where the search begins."""
_MOST_COMMAND_NS = 20_000.0
_PROGRAM_PARTS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0)
"""Of the time of a flush, for the program of fast cells that it waits for, where the search begins."""
_SUSPENDS_NS = (2000, 10_000, 40_000)


@dataclass(frozen=True)
class Observed:
    """A row's number, as the logarithm of its mean, and its standard error."""

    row: Row
    log: float
    error: float
    count: int
    """Repetitions."""


@dataclass(frozen=True)
class FlashFit:
    """The figures, with their uncertainty."""

    drive: FlashDrive
    layout: Layout
    vector: Floats
    deviations: Floats
    model_error: float
    """Scatter beyond that of the measurements."""
    residuals: Mapping[str, float]
    """By load: the logarithm of what was measured over what the drive has."""


def observed(row: Row, measurements: Sequence[Measurement]) -> Observed:
    """A row from repetitions of its load."""
    logs = [_log(row, one) for one in measurements]
    scatter = float(np.std(logs, ddof=1)) if len(logs) > 1 else 0.0
    counted = 0.0
    if row.quantity == "iops" and not row.drawn:
        counted = _COUNTED / max(1, measurements[0].ios)
    error = math.hypot(scatter / math.sqrt(len(logs)), counted, _LEAST_ERROR)
    return Observed(row, float(np.mean(logs)), error, len(logs))


def _log(row: Row, found: Measurement) -> float:
    value = found.iops if row.quantity == "iops" else found.mean_ns
    return math.log(value or found.p50_ns)


class Problem:
    """The rows and what the simulator has for them."""

    def __init__(
        self,
        rows: Sequence[Observed],
        layout: Layout,
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
        by_seed = self.predicted(like, _SEEDS)
        counts = np.array([one.count for one in rows])
        self.own_errors = np.maximum(
            np.array([one.error for one in rows]), by_seed.std(axis=0, ddof=1) / np.sqrt(counts)
        )

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
        """Standard errors, with the model's own. A few repetitions say little of chance, simulations more."""
        errors: Floats = np.hypot(self.own_errors, self.model_error)
        return errors

    def residuals(self, vector: Floats) -> Floats:
        """Of rows and priors, in standard deviations."""
        drive = self.layout.drive(vector, self.like)
        misfit = (self.predicted(drive, _SEEDS).mean(axis=0) - self.measured) / self.errors
        residuals: Floats = np.concatenate([misfit, (vector - self.start) / self.priors])
        return residuals

    def cost(self, vector: Floats) -> float:
        """Half the sum of squares, of which large ones count less."""
        squares = (self.residuals(vector) / _TOLERATED) ** 2
        return float(_TOLERATED**2 * np.sum(np.sqrt(1 + squares) - 1))

    def slopes(self, vector: Floats) -> Floats:
        """Derivatives of the rows, of which one seed is enough: under it most of the chance cancels."""
        low, high = self.layout.bounds()
        columns = []
        for index, step in enumerate(self.layout.steps()):
            up, down = vector.copy(), vector.copy()
            up[index] = min(vector[index] + step, high[index])
            down[index] = max(vector[index] - step, low[index])
            difference = self._once(up) - self._once(down)
            columns.append(difference / (up[index] - down[index]))
        return np.column_stack(columns)

    def _once(self, vector: Floats) -> Floats:
        line: Floats = self.predicted(self.layout.drive(vector, self.like), _FIRST_SEED)[0]
        return line

    def jacobian(self, vector: Floats) -> Floats:
        """The derivative of the residuals."""
        return np.vstack([self.slopes(vector) / self.errors[:, None], np.diag(1 / self.priors)])


def fitted(
    rows: Sequence[Observed],
    names: Sequence[str],
    start: FlashDrive,
    model: Model,
    known: Mapping[str, float],
    others: Sequence[FlashDrive] = (),
) -> FlashFit:
    """The figures under which the simulator gives what was measured.

    Args:
        rows: What was measured.
        names: The figures to fit.
        start: Where the search begins.
        model: The simulator.
        known: Standard deviations of the logarithms of figures that closed forms give already.
        others: With other sizes of buffer and fast cells, where the search might begin too.
    """
    layout = Layout(tuple(names))
    short = [one for one in rows if one.row.load.syncs or one.row.runtime_us <= _SHORT_US]
    start = _best_start(Problem(short, layout, start, model, known), start)
    problem = Problem(rows, layout, start, model, known)
    starts = [
        start,
        *(replace(start, slc_bytes=one.slc_bytes, buffer_bytes=one.buffer_bytes) for one in others),
    ]
    vector = min((layout.vector(one) for one in starts), key=problem.cost)
    problem.start = vector
    for _ in range(2):
        vector = _descended(problem, vector)
        before, problem.model_error = problem.model_error, _excess(problem, vector)
        if problem.model_error <= before:
            break
    return _finished(problem, vector)


def _descended(problem: Problem, vector: Floats) -> Floats:
    """Levenberg and Marquardt's method, with bounds for figures and for steps.

    SciPy's own shrinks its steps near a bound, which the link's time for a command often is.
    """
    low, high = problem.layout.bounds()
    most = _MOST_STEPS * problem.layout.steps()
    cost, damping = problem.cost(vector), _FIRST_DAMPING
    for _ in range(_CALLS):
        residuals = problem.residuals(vector)
        weights = (1 + (residuals / _TOLERATED) ** 2) ** -0.25
        slopes = problem.jacobian(vector) * weights[:, None]
        lengths = np.sqrt(np.sum(slopes**2, axis=0))
        for _ in range(_TRIES):
            step = lsq_linear(
                np.vstack([slopes, np.diag(damping * lengths)]),
                np.concatenate([-weights * residuals, np.zeros(len(vector))]),
                bounds=(np.maximum(low - vector, -most) - 1e-12, np.minimum(high - vector, most) + 1e-12),
            ).x
            tried = np.clip(vector + step, low, high)
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


def _best_start(problem: Problem, start: FlashDrive) -> FlashDrive:
    """The start with the best times for a command, a flush and a suspension: closed forms say little."""

    def cost(drive: FlashDrive) -> float:
        return problem.cost(problem.layout.vector(drive))

    together = start.command + start.interface
    for part in _COMMAND_PARTS:
        command = part * min(together, _MOST_COMMAND_NS)
        other = replace(start, command=command, interface=max(0.0, together - command))
        start = min(start, other, key=cost)
    if {"flush", "slc_program"} <= set(problem.layout.names):
        synced = start.slc_program + start.flush
        for part in _PROGRAM_PARTS:
            program = part * synced
            start = min(start, replace(start, slc_program=program, flush=synced - program), key=cost)
    for suspend in _SUSPENDS_NS:
        start = min(start, replace(start, suspend=float(suspend)), key=cost)
    return start


def _excess(problem: Problem, vector: Floats) -> float:
    """Scatter beyond the measurements', so that together they explain the misfit."""
    drive = problem.layout.drive(vector, problem.like)
    misfit = problem.predicted(drive, _SEEDS).mean(axis=0) - problem.measured
    freedom = max(1, len(misfit) - len(vector))

    def surplus(model_error: float) -> float:
        return float(np.sum(misfit**2 / (problem.own_errors**2 + model_error**2))) - freedom

    if surplus(0.0) <= 0:
        return 0.0
    return float(brentq(surplus, 0.0, 10.0))


def _finished(problem: Problem, vector: Floats) -> FlashFit:
    drive = problem.layout.drive(vector, problem.like)
    by_seed = problem.predicted(drive, _SEEDS)
    chance = by_seed.std(axis=0, ddof=1) / math.sqrt(len(by_seed))
    errors = np.hypot(problem.errors, chance)
    weighted = problem.slopes(vector) / errors[:, None]
    information = weighted.T @ weighted + np.diag(1 / problem.priors**2)
    misfit = problem.measured - by_seed.mean(axis=0)
    return FlashFit(
        drive=drive,
        layout=problem.layout,
        vector=vector,
        deviations=np.sqrt(np.diag(np.linalg.inv(information))),
        model_error=problem.model_error,
        residuals={one.row.load.name: float(part) for one, part in zip(problem.rows, misfit, strict=True)},
    )
