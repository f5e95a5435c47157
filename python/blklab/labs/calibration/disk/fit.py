"""Fits the figures: weighted least squares with the simulator as the forward model.

The search starts from closed forms, for each way in which the disk may be limited, with short simulations;
the best continues with longer ones. What the model cannot express shows as scatter beyond that of the
measurements; it is estimated and widens the intervals. The simulator draws at random too, so the last step
averages over more seeds than the search.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from scipy.optimize import brentq

from blklab.labs.calibration.disk.forward import COARSE_IOS, FINE_IOS, Forward
from blklab.labs.calibration.disk.loads import DiskLoad
from blklab.labs.calibration.disk.observations import DiskObservation, Row, fitted_rows
from blklab.labs.calibration.disk.parameters import Floats, Layout, VirtualDisk
from blklab.labs.calibration.disk.search import MOST_STEPS, SEEDS, DiskProblem, best_traded
from blklab.labs.calibration.disk.servers import likely_servers
from blklab.labs.calibration.disk.start import link_units, starting_disks
from blklab.spec.experiment import DEFAULT_CONFIDENCE

_FIRST_MODEL_ERROR = 0.01
"""Scatter beyond the measurements' that the search assumes before it is known."""
_FIRST_CALLS, _COARSE_CALLS, _FINE_CALLS = 4, 8, 12
"""Steps of the search from each start, from the best starts, and at the end."""
TWO_SIDED = NormalDist().inv_cdf((1 + DEFAULT_CONFIDENCE) / 2)
_CERTAIN_MISFIT = TWO_SIDED**2
_MOST_PLACEMENTS = 2
"""Searches with other placements of commands."""


@dataclass(frozen=True)
class DiskFit:
    """The figures with their uncertainty."""

    disk: VirtualDisk
    layout: Layout
    vector: Floats
    deviations: Floats
    """Standard deviations of the vector's entries."""
    slopes: Floats
    """Derivative of each row (of `rows`) by each entry."""
    rows: list[Row]
    model_error: float
    """Scatter that the model cannot express, as the standard deviation of a number's logarithm."""
    undecided: frozenset[str]
    """Choices (keys of the profile) of which the loads leave open which is right."""
    parallel_interval: tuple[int, int | None]
    """None: any number above would do as well."""
    with_others: tuple[Floats, Floats]
    """The least and the largest entries that go with other numbers of servers, or the other placement."""


def fitted(
    found: Mapping[Row, DiskObservation],
    loads: Sequence[DiskLoad],
    forward: Forward,
    *,
    flushes: bool,
    near: DiskFit | None = None,
) -> DiskFit:
    """The figures under which the simulator gives what was measured.

    Args:
        found: What was measured.
        loads: The loads to fit to.
        forward: Predicts them.
        flushes: Whether the disk has a volatile cache.
        near: The fit to fewer measurements; None to search from the beginning.
    """
    writes = any(not load.reads_only for load in loads)
    rows = [row for row in fitted_rows(loads) if row in found and (flushes or row[1] != "sync")]
    one_way = [row for row in rows if row[0].direction != "mixed"]
    starts = starting_disks(found, loads, writes=writes) if near is None else [near.disk]
    layout = Layout(
        writes=writes,
        flushes=flushes,
        latency_ns=starts[0].read.latency_ns,
        links=link_units(found, loads, writes=writes),
    )

    def problem(like: VirtualDisk, rows: Sequence[Row], model_error: float, ios: int) -> DiskProblem:
        return DiskProblem(forward, layout, like, rows, found, model_error=model_error, ios=ios)

    best = starts[0]
    undecided = set() if near is None else set(near.undecided) - {"placement"}
    if near is None:
        # One direction may be limited by servers, the other by its link.
        starts = [
            best_traded(problem(start, one_way, _FIRST_MODEL_ERROR, COARSE_IOS), start) for start in starts
        ]
        for calls in (_FIRST_CALLS, _COARSE_CALLS):
            tried = []
            for start in starts:
                coarse = problem(start, one_way, _FIRST_MODEL_ERROR, COARSE_IOS)
                vector, cost = coarse.solved(calls=calls)
                tried.append((cost, layout.disk(vector, start)))
            tried.sort(key=lambda one: one[0])
            # The best of each placement: two of one would settle it without a look at the other.
            placements = {disk.placement: disk for _, disk in reversed(tried)}
            kept = sorted(placements.values(), key=[disk for _, disk in tried].index)
            starts = [
                best_traded(problem(disk, one_way, _FIRST_MODEL_ERROR, COARSE_IOS), disk) for disk in kept
            ]
        best = starts[0]
        if writes:
            # Mixtures of reads and writes tell placements apart too.
            misfits = {
                disk: _misfit(problem(disk, rows, _FIRST_MODEL_ERROR, COARSE_IOS))
                for start in starts
                for disk in (start.of_mixtures(chosen=True), start.of_mixtures(chosen=False))
            }
            best = min(misfits, key=misfits.__getitem__)
            one, other = best.of_mixtures(chosen=True), best.of_mixtures(chosen=False)
            if abs(misfits[one] - misfits[other]) < _CERTAIN_MISFIT:
                undecided.add(best.choice_of_mixtures)
    for _ in range(_MOST_PLACEMENTS):
        model_error = _FIRST_MODEL_ERROR
        best = best_traded(problem(best, rows, model_error, FINE_IOS), best)
        for _ in range(2):
            fine = problem(best, rows, model_error, FINE_IOS)
            vector, _ = fine.solved(calls=_FINE_CALLS)
            best = layout.disk(vector, best)
            before, model_error = model_error, _excess(fine, vector, found)
            if model_error <= before:
                break
        last = problem(_with_whole_servers(best), rows, model_error, FINE_IOS)
        fit, better = _finished(last, model_error, undecided)
        if better is None:
            break
        # The other placement is clearly nearer: the search restarts there.
        best = better
    return fit


def _misfit(problem: DiskProblem) -> float:
    return float(np.sum(problem.residuals(problem.start) ** 2))


def _with_whole_servers(disk: VirtualDisk) -> VirtualDisk:
    return replace(disk, parallel=float(max(1, round(disk.parallel))))


def _excess(problem: DiskProblem, vector: Floats, found: Mapping[Row, DiskObservation]) -> float:
    """Scatter of the residuals beyond that of the measurements, so that together they explain the misfit."""
    misfit = problem.by_seed(vector, SEEDS).mean(axis=0) - problem.measured
    errors = np.array([found[row].error for row in problem.rows])
    return excess_scatter(misfit, errors, max(1, len(misfit) - len(vector)))


def excess_scatter(misfit: Floats, errors: Floats, freedom: int) -> float:
    """Standard deviation that the measurements' errors lack to explain a misfit.

    Args:
        misfit: Predicted less measured logarithms.
        errors: Standard errors of the measured ones.
        freedom: Degrees of freedom.
    """

    def surplus(model_error: float) -> float:
        return float(np.sum(misfit**2 / (errors**2 + model_error**2))) - freedom

    if surplus(0.0) <= 0:
        return 0.0
    return float(brentq(surplus, 0.0, 10.0))


def _finished(
    problem: DiskProblem, model_error: float, undecided: Collection[str]
) -> tuple[DiskFit, VirtualDisk | None]:
    """The last step, over several seeds, and the uncertainty; a nearer disk, if another placement has one."""
    layout, vector = problem.layout, problem.start
    by_seed = problem.by_seed(vector, SEEDS)
    predicted = by_seed.mean(axis=0)
    chance = by_seed.std(axis=0, ddof=1) / math.sqrt(len(by_seed))
    errors = np.hypot(problem.errors, chance)
    slopes = problem.slopes(vector)
    weighted = slopes / errors[:, None]
    information = weighted.T @ weighted + np.diag(1 / problem.prior**2)
    covariance = np.linalg.inv(information)
    # The number of servers is whole, and stays.
    free = [index for index, name in enumerate(layout.names) if name != "parallel"]
    misfit = (problem.measured - predicted) / errors
    step = np.zeros(len(vector))
    step[free] = np.linalg.solve(information[np.ix_(free, free)], (weighted.T @ misfit)[free])
    limit = MOST_STEPS * layout.steps()
    low, high = layout.bounds()
    last = np.clip(vector + np.clip(step, -limit, limit), low, high)
    servers = likely_servers(problem, errors, information, weighted, _CERTAIN_MISFIT)
    open_choices = {*undecided, *(["placement"] if servers.undecided else [])}
    fit = DiskFit(
        disk=layout.disk(last, problem.like),
        layout=layout,
        vector=last,
        deviations=np.sqrt(np.diag(covariance)),
        slopes=slopes,
        rows=list(problem.rows),
        model_error=model_error,
        undecided=frozenset(open_choices),
        parallel_interval=(servers.low, servers.high),
        with_others=(servers.least, servers.largest),
    )
    return fit, servers.better
