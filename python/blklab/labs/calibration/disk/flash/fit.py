"""Fits the figures of a flash drive, and finds their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq

from blklab.labs.calibration.disk.flash.figures import FlashDrive, FlashLayout, Floats
from blklab.labs.calibration.disk.flash.search import SEEDS, FlashProblem, Observed, descended
from blklab.labs.calibration.disk.flash.valleys import walked
from blklab.labs.calibration.disk.model import Model

_SHORT_US = 200_000
"""Longer loads, which take longer to simulate, wait until the search has begun."""
_ROUGH_CALLS = 3
_COMMAND_PARTS = (0.0, 0.1, 0.25, 0.5, 0.8)
"""Of the time between deep writes, for the link's time for a command, where the search begins."""
_MOST_COMMAND_NS = 20_000.0
_PROGRAM_PARTS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0)
"""Of the time of a flush, for the program of fast cells that it waits for, where the search begins."""
_SUSPENDS_NS = (2000, 10_000, 40_000)
_LESS_ERROR = 0.7
"""Of the error that the model was thought to have: with less, intervals are looked for anew."""


@dataclass(frozen=True)
class FlashFit:
    """The figures, with their uncertainty."""

    drive: FlashDrive
    layout: FlashLayout
    vector: Floats
    deviations: Floats
    intervals: Mapping[str, tuple[float, float]]
    """Entries of figures that can replace each other; those of others follow from the deviations."""
    model_error: float
    """Scatter beyond that of the measurements."""
    residuals: Mapping[str, float]
    """By load: the logarithm of what was measured over what the drive has."""


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
    layout = FlashLayout(tuple(names))
    start = _best_start(FlashProblem(_short(rows), layout, start, model, known), start)
    problem = FlashProblem(rows, layout, start, model, known)
    starts = [
        start,
        *(replace(start, slc_bytes=one.slc_bytes, buffer_bytes=one.buffer_bytes) for one in others),
        *(_programs(start) if {"flush", "slc_program"} <= set(names) else ()),
    ]
    vector = min((layout.vector(one) for one in starts), key=problem.cost)
    problem.start = vector
    for _ in range(2):
        vector = descended(problem, vector)
        problem.reach(vector)
        problem.model_error = _excess(problem, vector)
    found = walked(problem, vector)
    error = _excess(problem, found.vector)
    if error < _LESS_ERROR * problem.model_error:
        # What looked like the model's own error was a poor place.
        problem.model_error = error
        found = walked(problem, descended(problem, found.vector))
    return _finished(problem, found.vector, found.intervals)


def roughly_fitted(
    rows: Sequence[Observed],
    names: Sequence[str],
    start: FlashDrive,
    model: Model,
    known: Mapping[str, float],
) -> FlashDrive:
    """A drive near the best one, by short loads and in a few steps; arguments as of `fitted`."""
    layout = FlashLayout(tuple(names))
    problem = FlashProblem(_short(rows), layout, start, model, known)
    start = _best_start(problem, start)
    problem.start = layout.vector(start)
    return layout.drive(descended(problem, problem.start, calls=_ROUGH_CALLS), start)


def _short(rows: Sequence[Observed]) -> list[Observed]:
    return [one for one in rows if one.row.load.syncs or one.row.runtime_us <= _SHORT_US]


def _programs(start: FlashDrive) -> list[FlashDrive]:
    """With more of a flush's time in the flush, or more in the program of fast cells that it waits for."""
    synced = start.slc_program + start.flush
    programs = [part * synced for part in _PROGRAM_PARTS]
    return [replace(start, slc_program=program, flush=synced - program) for program in programs]


def _best_start(problem: FlashProblem, start: FlashDrive) -> FlashDrive:
    """The start with the best times for a command and a suspension: closed forms say little."""

    def cost(drive: FlashDrive) -> float:
        return problem.cost(problem.layout.vector(drive))

    together = start.command + start.interface
    for part in _COMMAND_PARTS:
        command = part * min(together, _MOST_COMMAND_NS)
        other = replace(start, command=command, interface=max(0.0, together - command))
        start = min(start, other, key=cost)
    for suspend in _SUSPENDS_NS:
        start = min(start, replace(start, suspend=float(suspend)), key=cost)
    return start


def _excess(problem: FlashProblem, vector: Floats) -> float:
    """Scatter beyond the measurements', so that together they explain the misfit."""
    drive = problem.layout.drive(vector, problem.like)
    misfit = problem.predicted(drive, SEEDS).mean(axis=0) - problem.measured
    freedom = max(1, len(misfit) - len(vector))

    def surplus(model_error: float) -> float:
        return float(np.sum(misfit**2 / (problem.own_errors**2 + model_error**2))) - freedom

    if surplus(0.0) <= 0:
        return 0.0
    return float(brentq(surplus, 0.0, 10.0))


def _finished(
    problem: FlashProblem, vector: Floats, intervals: Mapping[str, tuple[float, float]]
) -> FlashFit:
    drive = problem.layout.drive(vector, problem.like)
    by_seed = problem.predicted(drive, SEEDS)
    weighted = problem.slopes(vector, range(len(vector))) / problem.errors[:, None]
    information = weighted.T @ weighted + np.diag(1 / problem.priors**2)
    misfit = problem.measured - by_seed.mean(axis=0)
    return FlashFit(
        drive=drive,
        layout=problem.layout,
        vector=vector,
        deviations=np.sqrt(np.diag(np.linalg.inv(information))),
        intervals=intervals,
        model_error=problem.model_error,
        residuals={one.row.load.name: float(part) for one, part in zip(problem.rows, misfit, strict=True)},
    )
