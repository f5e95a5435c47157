"""The search for a disk's figures: least squares, which the chance in the simulator must not end early.

The simulator draws at random, as much as the measurements scatter: under one seed the misfit has hollows that
are chance alone. So long simulations are averaged over some seeds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy.optimize import least_squares

from blklab.labs.calibration.disk.forward import COARSE_IOS, Forward
from blklab.labs.calibration.disk.loads import SMALLEST_KIB
from blklab.labs.calibration.disk.observations import DiskObservation, Row
from blklab.labs.calibration.disk.parameters import Floats, Layout, VirtualDisk

SEEDS = range(11, 19)
"""Of all simulations."""
_COARSE_SEEDS, _FINE_SEEDS = SEEDS[:1], SEEDS[:4]
"""Of those that the search averages over. Derivatives take the first seed alone: between two disks under the
same seed most of the chance cancels."""
_TOLERATED_RESIDUAL = 3.0
"""Standard errors beyond which a residual counts less: one odd load must not decide."""
_COST_TOLERANCE = 1e-3
_STEP_TOLERANCE = 1e-5
"""Part of the vector's norm, in which logarithms of latencies are far above ten: a step that ends the search
changes no latency by more than about 0.02 %. Small steps are usual where a link and servers trade places."""
_LINK_PARTS = (0.03, 0.15, 0.3, 0.5, 0.75)
"""Of the time that the link may take at most for a command: where the search begins anew."""
MOST_STEPS = 10
"""Of numerical derivatives, over which figures follow in a straight line."""


class DiskProblem:
    """Residuals of the rows, then of the prior.

    Args:
        forward: Predicts the rows.
        layout: Of the vectors.
        like: Where the search begins; what the vector lacks is as in this disk.
        rows: The numbers to fit to.
        found: What was measured of them.
        model_error: Scatter beyond the measurements'.
        ios: Simulated of each load.
    """

    def __init__(
        self,
        forward: Forward,
        layout: Layout,
        like: VirtualDisk,
        rows: Sequence[Row],
        found: Mapping[Row, DiskObservation],
        *,
        model_error: float,
        ios: int,
    ) -> None:
        self.forward = forward
        self.layout = layout
        self.like = like
        self.rows = rows
        self.ios = ios
        self.seeds = _FINE_SEEDS if ios > COARSE_IOS else _COARSE_SEEDS
        self.measured = np.array([found[row].log for row in rows])
        self.errors = np.array([math.hypot(found[row].error, model_error) for row in rows])
        self.start = layout.vector(like)
        self.prior = layout.prior_deviations()

    def predicted(self, vector: Floats, *, seed: int = SEEDS[0], like: VirtualDisk | None = None) -> Floats:
        """The rows of a disk, simulated once; what the vector lacks is as in another disk."""
        low, high = self.layout.bounds()
        disk = self.layout.disk(np.clip(vector, low, high), like or self.like)
        return self.forward.predicted(disk, self.rows, seed=seed, ios=self.ios)

    def residuals(self, vector: Floats) -> Floats:
        """Of the rows, then of the prior, in standard deviations."""
        predicted = self.by_seed(vector, self.seeds).mean(axis=0)
        misfit = (predicted - self.measured) / self.errors
        return np.concatenate([misfit, (vector - self.start) / self.prior])

    def by_seed(self, vector: Floats, seeds: Sequence[int], *, like: VirtualDisk | None = None) -> Floats:
        """Predictions: a row for each seed; see `predicted`."""
        return np.array([self.predicted(vector, seed=seed, like=like) for seed in seeds])

    def slopes(self, vector: Floats) -> Floats:
        """Of the predictions alone."""
        low, high = self.layout.bounds()
        steps = self.layout.steps()
        columns = []
        for index, step in enumerate(steps):
            up, down = vector.copy(), vector.copy()
            up[index] = min(vector[index] + step, high[index])
            # Where the search is coarse, one side is enough.
            if up[index] == vector[index] or self.ios > COARSE_IOS:
                down[index] = max(vector[index] - step, low[index])
            columns.append((self.predicted(up) - self.predicted(down)) / (up[index] - down[index]))
        return np.column_stack(columns)

    def cost(self, vector: Floats) -> float:
        """The sum that `solved` minimises."""
        return float(np.sum(tolerated(self.residuals(vector)) ** 2) / 2)

    def jacobian(self, vector: Floats) -> Floats:
        """The derivative of the residuals."""
        return np.vstack([self.slopes(vector) / self.errors[:, None], np.diag(1 / self.prior)])

    def solved(self, *, calls: int) -> tuple[Floats, float]:
        """The best vector and its cost."""
        low, high = self.layout.bounds()
        inside = np.clip(self.start, low + 1e-6, high - 1e-6)
        found = least_squares(
            self.residuals,
            inside,
            jac=self.jacobian,
            bounds=(low, high),
            x_scale=self.layout.steps() * 10,
            loss="soft_l1",
            f_scale=_TOLERATED_RESIDUAL,
            ftol=_COST_TOLERANCE,
            xtol=_STEP_TOLERANCE,
            gtol=None,
            max_nfev=calls,
        )
        return found.x, float(found.cost)


def tolerated(residuals: Floats) -> Floats:
    """Residuals of which large ones count less: their squares are twice SciPy's loss ``soft_l1``."""
    squares = (residuals / _TOLERATED_RESIDUAL) ** 2
    counted: Floats = _TOLERATED_RESIDUAL * np.sqrt(2 * (np.sqrt(1 + squares) - 1))
    return np.copysign(counted, residuals)


def best_traded(problem: DiskProblem, disk: VirtualDisk) -> VirtualDisk:
    """The best of a disk and of those whose links take more or less of the same latency.

    A single command does not tell the link from its server. Under a queue, the rate hardly depends on the
    link until it is full, and on nothing else from there on. A derivative sees one side of this bend only,
    so a search that is on the wrong side creeps, or stays there.
    """
    layout = problem.layout
    for direction in layout.links:
        tried = [disk, *(_traded(layout, disk, direction, part) for part in _LINK_PARTS)]
        disk = min(tried, key=lambda one: problem.cost(layout.vector(one)))
    return disk


def _traded(layout: Layout, disk: VirtualDisk, direction: str, part: float) -> VirtualDisk:
    """The disk with a link that takes a part of the time that it has for a command; its servers the rest."""
    service = disk.service(direction)
    room_ns = layout.links[direction].command_ns - SMALLEST_KIB * service.kib_ns
    command_ns = max(0.0, min(part * room_ns, 0.5 * (service.latency_ns + service.command_ns)))
    latency_ns = service.latency_ns + service.command_ns - command_ns
    return disk.with_service(direction, replace(service, command_ns=command_ns, latency_ns=latency_ns))
