"""The sweep as a whole: all vrates, the range that follows, and each solution tried on the model."""

from __future__ import annotations

import numpy as np

from blklab.labs.iocost.document import Sweep, SweptVrate
from blklab.labs.iocost.estimates import Estimate
from blklab.labs.iocost.measuring import IocostObserver
from blklab.labs.iocost.solutions import (
    Solution,
    expected_of,
    latency_target_us,
    swept_solutions,
)
from blklab.labs.iocost.sweep import SEEDS, SWEPT_VRATES, GroupRun, SweptDisk, runs_under, scaled, swept
from blklab.labs.iocost.vrate_range import VrateRange, vrate_range


def sweep_of(
    disk: SweptDisk, coefficients: list[Estimate], observer: IocostObserver
) -> tuple[Sweep, list[list[GroupRun]]]:
    """Sweeps a model of the disk.

    Args:
        disk: The model.
        coefficients: Its own, with their intervals.
        observer: Follows it.

    Returns:
        The result, and the runs behind it: for each seed one at each of `SWEPT_VRATES`.

    Raises:
        BlklabError: if a simulation fails.
    """
    runs: list[list[GroupRun]] = []
    for step in range(SEEDS):
        observer.measuring("vrates on the model", done=step, planned=SEEDS)
        runs.append(swept(disk, step))
    found = vrate_range(
        SWEPT_VRATES,
        np.array([[run.bandwidth for run in row] for row in runs]),
        np.array([[run.p99_ns for run in row] for row in runs]),
        np.array([[run.isolation for run in row] for row in runs]),
    )
    reads, writes = disk.asked_iops
    result = Sweep(
        profile=disk.device,
        machine=disk.machine.source,
        coefficients=coefficients,
        seeds=SEEDS,
        asked_reads_per_second=reads,
        asked_writes_per_second=writes,
        runtime_s=disk.runtime_us / 1e6,
        without=expected_of(runs_under(disk, None, {}, range(SEEDS))),
        vrates=[
            SweptVrate(vrate=vrate, expected=expected_of([row[index] for row in runs]))
            for index, vrate in enumerate(SWEPT_VRATES)
        ],
        range=found,
    )
    return result, runs


def solutions_of_sweep(
    disk: SweptDisk, found: VrateRange, runs: list[list[GroupRun]], model: dict[str, int], percentile: int
) -> list[Solution]:
    """The solutions that follow from a sweep.

    Args:
        disk: The model that was swept.
        found: The sweep's range.
        runs: Behind it.
        model: Coefficients of the disk itself.
        percentile: That latency targets are about.
    """
    at_knee = [row[SWEPT_VRATES.index(found.knee.value)] for row in runs]
    targets_us = (
        latency_target_us([run.read for run in at_knee], percentile),
        latency_target_us([run.write for run in at_knee], percentile),
    )
    return swept_solutions(
        model, found, percentile=percentile, swept_us=disk.latencies_us, targets_us=targets_us
    )


def tried(solution: Solution, disk: SweptDisk) -> Solution:
    """The solution with what its quality of service does on the model, under the model's own coefficients."""
    model = scaled(disk.model, solution.vrate_max / 100)
    runs = runs_under(disk, solution.parameters.qos, model, range(SEEDS))
    return solution.model_copy(update={"expected": expected_of(runs)})
