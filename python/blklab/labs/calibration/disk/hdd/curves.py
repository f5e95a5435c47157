"""Seek curves through measured seeks: one for each distance at which the second part may begin."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import nnls

from blklab.labs.calibration.disk.hdd.closed_form import Designed, jump_distances
from blklab.labs.calibration.disk.hdd.figures import ArmDisk, Floats, SeekCurve

_FAR_PARTS = tuple(np.geomspace(0.01, 0.9, 28))
"""Of the cylinders, where the second part may begin."""
_FEWEST = 3
"""Seeks on either part."""


@dataclass(frozen=True)
class TriedCurve:
    """The best curve whose second part begins at a certain distance."""

    misfit: float
    curve: SeekCurve
    short: Floats
    """Covariance of the first part's constant and of its factor of the root."""
    long: Floats
    """Of the second part's constant and slope."""

    def error_ns(self, distance: float) -> float:
        """Standard error of a seek, if the second part does begin there."""
        is_short = distance < self.curve.far_from
        shape = np.array([1.0, math.sqrt(distance) if is_short else distance])
        return math.sqrt(max(0.0, float(shape @ (self.short if is_short else self.long) @ shape)))


def with_best_curve(
    disk: ArmDisk, design: Designed, seeks_ns: Floats, errors: Floats
) -> tuple[ArmDisk, list[TriedCurve]]:
    """The disk with the curve that fits seeks best, and all curves that were tried."""
    distances = jump_distances(disk, design)
    cylinders = disk.geometry.cylinders
    tried: list[TriedCurve] = []
    for part in _FAR_PARTS:
        far_from = max(2, round(part * cylinders))
        is_short = distances < far_from
        if is_short.sum() < _FEWEST or (~is_short).sum() < _FEWEST:
            continue
        misfit, lines, covariances = 0.0, [], []
        for chosen, shape in ((is_short, np.sqrt(distances)), (~is_short, distances)):
            scale = float(np.max(shape[chosen]))
            system = np.column_stack([np.ones(chosen.sum()), shape[chosen] / scale]) / errors[chosen, None]
            solution, norm = nnls(system, seeks_ns[chosen] / errors[chosen])
            misfit += norm**2
            lines.append((float(solution[0]), float(solution[1]) / scale))
            covariances.append(np.linalg.pinv(system.T @ system) / np.outer([1, scale], [1, scale]))
        (near, root), (far, slope) = lines
        near = max(near, least_near_ns(disk.switch_ns, root))
        whole = round(slope)
        far += (slope - whole) * float(np.mean(distances[~is_short]))
        curve = SeekCurve(near, root, far_from, max(0.0, far), whole)
        tried.append(TriedCurve(misfit, curve, *covariances))
    best = min(tried, key=lambda one: one.misfit).curve
    return replace(disk, curve=best), tried


def least_near_ns(switch_ns: float, root_ns: float) -> float:
    """No seek over two cylinders is quicker than a switch of tracks; figures are whole nanoseconds."""
    return switch_ns - root_ns * math.sqrt(2) + 3


def likely_seeks_ns(disk: ArmDisk, part: float, tried: Sequence[TriedCurve], most: float) -> list[float]:
    """The ends of the intervals that each likely curve gives to the seek over a part of the disk.

    Nobody knows where the second part begins, and with each beginning the seek is known with an error. So a
    curve's interval is the wider the less it misses itself.

    Args:
        disk: Gives the number of cylinders.
        part: Of them.
        tried: All curves.
        most: The misfit from which on a curve is ruled out.
    """
    distance = max(2, round(part * (disk.geometry.cylinders - 1)))
    ends = []
    for one in tried:
        if one.misfit <= most:
            reach = math.sqrt(most - one.misfit) * one.error_ns(distance)
            value = one.curve.over_ns(distance)
            ends += [value - reach, value + reach]
    return ends
