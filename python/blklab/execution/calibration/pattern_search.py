"""A pattern search for factors of least cost, and derivatives by wide steps.

The simulator counts whole I/Os, and queues that form or dissolve make its rates jump, so that methods that
trust small steps stop early.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_WIDTHS = (1.0, 0.5, 0.25, 0.12)
"""Steps of the search, of a factor's logarithm."""
_MOST_SWEEPS = 4
_LEAST_GAIN = 0.001
_STEP = 0.3
"""Step of the derivatives."""
_FINE_STEP = 0.1
_MOST_POLISHING = 5


def searched(cost: Callable[[Floats], float], nr_parameters: int) -> Floats:
    """The logarithms of least cost, one parameter at a time, in ever smaller steps."""
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


def polished(residuals: Callable[[Floats], Floats], logs: Floats) -> Floats:
    """The place after steps of Gauss and Newton, as long as they make the residuals less.

    A search along one parameter at a time gets stuck in valleys where two make up for each other.
    """
    lowest = float(np.sum(residuals(logs) ** 2))
    for _ in range(_MOST_POLISHING):
        step, *_ = np.linalg.lstsq(_slopes(residuals, logs, _FINE_STEP), -residuals(logs), rcond=None)
        cost = float(np.sum(residuals(logs + step) ** 2))
        if cost >= lowest:
            break
        logs, lowest = logs + step, cost
    return logs


def deviations(residuals: Callable[[Floats], Floats], logs: Floats) -> Floats:
    """Standard deviations of the logarithms there.

    Args:
        residuals: In standard deviations, with those of the parameters' priors. Where they scatter by more,
            the model does not fit as well as it is allowed to, and the deviations grow with that.
        logs: The place.
    """
    slopes = _slopes(residuals, logs, _STEP)
    excess = max(1.0, float(np.mean(residuals(logs) ** 2)))
    found: Floats = np.sqrt(np.diag(np.linalg.inv(slopes.T @ slopes)) * excess)
    return found


def _slopes(residuals: Callable[[Floats], Floats], logs: Floats, width: float) -> Floats:
    """The derivative of each residual (row) by each parameter (column)."""
    steps = width * np.eye(len(logs))
    columns = [(residuals(logs + step) - residuals(logs - step)) / (2 * width) for step in steps]
    return np.column_stack(columns)
