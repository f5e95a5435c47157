"""Fits rotation, tracks, seeks and the interface.

Each designed load has a closed form, which gives its numbers but for what the host adds. The simulator, under
the same loads, gives all. So the closed forms tell in which direction to go and the simulator where to stop:
each step solves for the figures whose closed forms differ from those of the present figures by as much as the
measurements differ from the simulation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import lsq_linear

from blklab.labs.calibration.disk.fit import TWO_SIDED
from blklab.labs.calibration.disk.ground import DiskMeasurement
from blklab.labs.calibration.disk.hdd.closed_form import (
    SEQUENTIAL_SECTORS,
    Designed,
    closed_form,
    jump_distances,
    place_error,
)
from blklab.labs.calibration.disk.hdd.curves import (
    TriedCurve,
    least_near_ns,
    likely_seeks_ns,
    with_best_curve,
)
from blklab.labs.calibration.disk.hdd.figures import (
    ArmDisk,
    Floats,
    SeekCurve,
    assumed_heads,
)
from blklab.labs.calibration.disk.hdd.loads import HIT_KIB
from blklab.labs.calibration.disk.hdd.observed import Row, error_of
from blklab.labs.calibration.disk.model import Model

_SEEDS = range(11, 23)
_STEPS = 5
_WHOLE = 0.06
"""Pairs whose waits differ by another part of a revolution than this from a whole number are left out."""
_ALIKE = 1e-3
_LEAST_TURN_ERROR = 1e-4
_CERTAIN = TWO_SIDED**2


@dataclass(frozen=True)
class MechanicsEstimate:
    """A number with its standard error, in nanoseconds."""

    value: float
    error: float


def revolution(
    turned: Sequence[tuple[int, Sequence[DiskMeasurement], Sequence[DiskMeasurement]]], about_ns: float
) -> MechanicsEstimate | None:
    """The time of a revolution, from pairs of loads without and with a pause.

    Args:
        turned: The pause of each pair in microseconds, and repetitions without and with it.
        about_ns: A revolution as far as it is known.

    Returns:
        None if no pair shows whole revolutions.
    """
    found = []
    for pause_us, direct, paused in turned:
        for first, second in zip(direct, paused, strict=False):
            for shorter, longer in ((first.min_ns, second.min_ns), (first.max_ns, second.max_ns)):
                between = (longer or 0) - (shorter or 0) + 1000 * pause_us
                number = round(between / about_ns)
                if number > 0 and abs(between / about_ns - number) < _WHOLE * number:
                    found.append(between / number)
    if not found:
        return None
    # Some steps end on one track in the one load and on the next in the other, so their waits differ by a
    # switch. The true time is the one on which most agree.
    values = np.array(found)
    near = np.abs(values[:, None] / values[None, :] - 1) < _ALIKE
    alike = values[near[int(np.argmax(near.sum(axis=1)))]]
    middle = float(np.mean(alike))
    scatter = float(np.std(alike, ddof=1)) / math.sqrt(len(alike)) if len(alike) > 1 else _ALIKE * middle
    return MechanicsEstimate(middle, max(scatter, _LEAST_TURN_ERROR * middle))


_NAMES = ("switch", "outer", "inner", "near", "root", "far", "slope", "settle", "hit", "transfer")


def _vector(disk: ArmDisk) -> Floats:
    """The figures, tracks by the time of a sector, which is what loads see."""
    curve = disk.curve
    return np.array(
        [
            disk.switch_ns,
            disk.revolution_ns / disk.outer_sectors,
            disk.revolution_ns / disk.inner_sectors,
            curve.near_ns,
            curve.root_ns,
            curve.far_ns,
            curve.slope_ns,
            disk.write_settle_ns,
            disk.hit_ns,
            1e9 * 1024 / disk.interface_rate,
        ]
    )


def _disk(vector: Floats, like: ArmDisk) -> ArmDisk:
    switch, outer, inner, near, root, far, slope, settle, hit, transfer = vector.tolist()
    root = max(0.0, root)
    near = max(near, least_near_ns(switch, root))
    curve = SeekCurve(near, root, like.curve.far_from, max(0.0, far), max(0.0, slope))
    return replace(
        like,
        switch_ns=max(0.0, switch),
        outer_sectors=like.revolution_ns / outer,
        inner_sectors=min(like.revolution_ns / inner, like.revolution_ns / outer),
        curve=curve,
        write_settle_ns=max(0.0, settle),
        hit_ns=max(1.0, hit),
        interface_rate=1e9 * 1024 / max(1e-3, transfer),
    )


@dataclass(frozen=True)
class Mechanics:
    """The fitted figures."""

    disk: ArmDisk
    covariance: Floats
    """Of the vector, in the order of its entries."""
    misfit: float
    """Sum of squared residuals over their number."""
    model_error: float
    """Relative scatter of times beyond that of the measurements: what the model cannot express."""
    far_from: tuple[int, int]
    """Distances at which the second part of the curve may begin."""
    seeks_ns: Mapping[float, tuple[float, float, float]]
    """For parts of the disk: the time of a seek and its interval."""
    errors: Mapping[str, float]
    """Standard errors of the vector's entries by name, for those that the loads tell."""


def started(
    design: Designed,
    found: Mapping[str, Sequence[DiskMeasurement]],
    like: ArmDisk,
) -> ArmDisk:
    """Figures from the closed forms alone."""

    def number(row: Row) -> float:
        return float(np.mean(row.values(found[row.load.name])))

    switch = max(0.0, float(np.mean([number(Row(load, "step")) for load in design.in_order])))
    per_track = [
        SEQUENTIAL_SECTORS * (like.revolution_ns + switch) / number(Row(load, "mean"))
        for load in (design.in_order[0], design.in_order[-1])
    ]
    hits = [number(Row(load, "mean")) for load in design.again]
    small, large = HIT_KIB
    transfer = max(1e-3, (hits[1] - hits[0]) / (large - small))
    outer, inner = max(per_track), min(per_track)
    disk = replace(
        like,
        switch_ns=switch,
        outer_sectors=outer,
        inner_sectors=inner,
        hit_ns=max(1.0, hits[0] - small * transfer - 8000),
        interface_rate=1e9 * 1024 / transfer,
        heads=assumed_heads(like.capacity_bytes, outer, inner),
    )
    seeks = np.array([number(Row(one.load, "middle")) - like.revolution_ns / 2 for one in design.jumps])
    return with_best_curve(disk, design, np.maximum(seeks, 1.0), np.full(len(seeks), 1e5))[0]


def fitted(
    design: Designed,
    found: Mapping[str, Sequence[DiskMeasurement]],
    start: ArmDisk,
    model: Model,
    parts: Sequence[float],
) -> Mechanics:
    """Fits the figures of the mechanics.

    Args:
        design: The loads.
        found: Their measurements, by name.
        start: Where to begin: `started`.
        model: The simulator.
        parts: Parts of the disk for which the time of a seek is asked.
    """
    rows = design.rows
    measured = np.array([float(np.mean(row.values(found[row.load.name]))) for row in rows])
    disk = start
    nr_jumps = len(design.jumps)
    placed = [*design.jumps, *design.write_jumps]
    tried: list[TriedCurve] = []
    for step in range(_STEPS):
        simulated = {
            load.name: one
            for load, one in zip(design.loads, model.measured(disk.device, design.loads, _SEEDS), strict=True)
        }
        errors = np.array([error_of(row, found[row.load.name], simulated[row.load.name]) for row in rows])
        errors[: len(placed)] = np.hypot(errors[: len(placed)], [place_error(disk, one) for one in placed])
        model_numbers = np.array([float(np.mean(row.values(simulated[row.load.name]))) for row in rows])
        # The closed forms' own numbers, moved by what the simulator says that they lack.
        wanted = closed_form(disk, design, disk.geometry) + measured - model_numbers
        if step + 1 < _STEPS:
            seeks = wanted[:nr_jumps] - disk.revolution_ns / 2
            disk, tried = with_best_curve(disk, design, np.maximum(seeks, 1.0), errors[:nr_jumps])
        disk, slopes = _improved(disk, design, wanted, errors)
    residuals = (measured - model_numbers) / errors
    weighted = slopes / errors[:, None]
    scale = np.maximum(np.abs(_vector(disk)), 1.0)
    information = (weighted * scale).T @ (weighted * scale) + 0.01 * np.eye(len(_NAMES))
    misfit = float(np.sum(residuals**2)) / max(1, len(rows) - 8)
    covariance = np.linalg.inv(information) * np.outer(scale, scale) * max(1.0, misfit)
    told = {
        name: math.sqrt(covariance[index, index])
        for index, name in enumerate(_NAMES)
        if np.any(slopes[:, index]) or name in {"outer", "inner"}
    }
    most = min(one.misfit for one in tried) + _CERTAIN * max(1.0, misfit)
    likely = [one.curve for one in tried if one.misfit <= most]
    return Mechanics(
        disk=disk,
        covariance=covariance,
        misfit=misfit,
        model_error=_model_error(rows, measured, model_numbers, errors),
        far_from=(min(one.far_from for one in likely), max(one.far_from for one in likely)),
        seeks_ns={
            part: _seek_interval(
                disk,
                part,
                covariance,
                likely_seeks_ns(disk, part, tried, most),
                _bend_ns(disk, part, design, residuals * errors, errors),
            )
            for part in parts
        },
        errors=told,
    )


def _model_error(rows: Sequence[Row], measured: Floats, modelled: Floats, errors: Floats) -> float:
    """Of whole times; what the slowest commands take longer is a difference of two of them."""
    whole = np.array([row.quantity != "step" for row in rows])
    relative, expected = (measured - modelled)[whole] / measured[whole], errors[whole] / measured[whole]
    return math.sqrt(max(0.0, float(np.mean(relative**2 - expected**2))))


def _improved(disk: ArmDisk, design: Designed, wanted: Floats, errors: Floats) -> tuple[ArmDisk, Floats]:
    """One linear step for all figures together, and the slopes that it went by."""
    vector = _vector(disk)
    scale = np.maximum(np.abs(vector), 1.0)
    geometry = disk.geometry
    at = closed_form(disk, design, geometry)

    def slope(index: int) -> Floats:
        step = 0.01 * scale[index]
        up = vector.copy()
        up[index] += step
        return np.asarray((closed_form(_disk(up, disk), design, geometry) - at) / step)

    slopes = np.column_stack([slope(index) for index in range(len(vector))])
    # The slope is a whole number of nanoseconds; the others follow it.
    free = [index for index, name in enumerate(_NAMES) if name != "slope"]
    system = slopes[:, free] * scale[free] / errors[:, None]
    prior = 0.1 * np.eye(len(free))
    solved = lsq_linear(
        np.vstack([system, prior]),
        np.concatenate([(wanted - at) / errors, np.zeros(len(free))]),
        bounds=(-0.9, 3.0),
    )
    moved = vector.copy()
    moved[free] += solved.x * scale[free]
    return _disk(moved, disk), slopes


def _bend_ns(disk: ArmDisk, part: float, design: Designed, missed_ns: Floats, errors: Floats) -> float:
    """How far the curve misses the two jumps that come nearest to a part of the disk, beyond their errors."""
    distances = jump_distances(disk, design)
    wanted = part * disk.geometry.cylinders
    near = np.argsort(np.abs(np.log(np.maximum(distances, 1) / wanted)))[:2]
    return math.sqrt(max(0.0, float(np.mean(missed_ns[near] ** 2 - errors[near] ** 2))))


def _seek_interval(
    disk: ArmDisk, part: float, covariance: Floats, others: Sequence[float], bend_ns: float
) -> tuple[float, float, float]:
    """The time of a seek over a part of the disk; its interval covers those of other curves."""
    value = disk.seek_over_ns(part)
    vector = _vector(disk)

    def seek(changed: Floats) -> float:
        return _disk(changed, disk).seek_over_ns(part)

    slopes = _numeric(seek, vector)
    half = TWO_SIDED * math.hypot(math.sqrt(max(0.0, float(slopes @ covariance @ slopes))), bend_ns)
    return value, min([value - half, *others]), max([value + half, *others])


def _numeric(function: Callable[[Floats], float], vector: Floats) -> Floats:
    at = function(vector)
    slopes = np.zeros(len(vector))
    for index, entry in enumerate(vector):
        step = 0.001 * max(1.0, abs(entry))
        moved = vector.copy()
        moved[index] += step
        slopes[index] = (function(moved) - at) / step
    return slopes
