"""A pattern search for factors under which residuals are least, and derivatives by wide steps.

The simulator counts whole I/Os, and queues that form or dissolve make its rates jump, so that methods that
trust small steps stop early.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from blklab.spec.experiment import DEFAULT_CONFIDENCE

Floats = NDArray[np.float64]
Residuals = Callable[[Floats], Floats]
"""Of the logarithms of factors: in standard deviations, with those of the factors' priors."""

_WIDTHS = (1.0, 0.5, 0.25, 0.12)
"""Steps of the search, of a factor's logarithm."""
_MOST_SWEEPS = 4
_LEAST_GAIN = 0.001
_STEP, _FINE_STEP = 0.3, 0.1
"""Steps of the derivatives: of half widths, and of the last part of a search."""
_MOST_CALLS = 6
_TWO_SIDED = NormalDist().inv_cdf((1 + DEFAULT_CONFIDENCE) / 2)


def searched(residuals: Residuals, nr_parameters: int) -> Floats:
    """The logarithms of least squares, one parameter at a time, in ever smaller steps."""

    def cost(logs: Floats) -> float:
        return float(np.sum(residuals(logs) ** 2))

    best = np.zeros(nr_parameters)
    lowest = cost(best)
    for width in _WIDTHS:
        for _ in range(_MOST_SWEEPS):
            before = lowest
            for index in range(nr_parameters):
                for step in (width, -width):
                    tried = best.copy()
                    tried[index] += step
                    found = cost(tried)
                    if found < lowest:
                        best, lowest = tried, found
                        break
            if before - lowest < _LEAST_GAIN * before:
                break
    return best


def polished(residuals: Residuals, logs: Floats) -> Floats:
    """The place of least squares near there, by SciPy's trust-region method.

    A search along one parameter at a time gets stuck in valleys where two make up for each other.
    """
    from scipy.optimize import least_squares  # noqa: PLC0415 - `blklab fidelity` imports this module, too

    def jacobian(place: Floats) -> Floats:
        return _slopes(residuals, place, _FINE_STEP)

    found: Floats = least_squares(residuals, logs, jac=jacobian, max_nfev=_MOST_CALLS).x
    return found


def half_widths(residuals: Residuals, logs: Floats) -> Floats:
    """Of the logarithms' 95 % intervals there.

    Where residuals scatter by more than their deviations, the model does not fit as well as it is allowed to,
    and the intervals grow with that.
    """
    slopes = _slopes(residuals, logs, _STEP)
    excess = max(1.0, float(np.mean(residuals(logs) ** 2)))
    found: Floats = _TWO_SIDED * np.sqrt(np.diag(np.linalg.inv(slopes.T @ slopes)) * excess)
    return found


def _slopes(residuals: Residuals, logs: Floats, width: float) -> Floats:
    """The derivative of each residual (row) by each parameter (column)."""
    steps = width * np.eye(len(logs))
    columns = [(residuals(logs + step) - residuals(logs - step)) / (2 * width) for step in steps]
    return np.column_stack(columns)
