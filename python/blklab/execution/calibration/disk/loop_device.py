"""Loop devices over memory: their thread copies, and the machine's cost table has the figures of that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

import numpy as np

from blklab.execution.calibration.disk.document import KERNELS_OWN, Figure
from blklab.execution.calibration.disk.fit import excess_scatter
from blklab.execution.calibration.disk.forward import Logs
from blklab.execution.calibration.disk.ground import LOOP_KIND, DiskFacts
from blklab.execution.calibration.disk.loads import DiskLoad
from blklab.execution.calibration.disk.observations import Observation, Row
from blklab.spec.machines import Machine

NOT_COVERED = "whatever the machine's cost table does not describe, such as caches of the processors"


def loop_device(facts: DiskFacts) -> str:
    """The device as in a target."""
    return f"{LOOP_KIND},capacity={facts.capacity_bytes},depth={facts.queues.depth}"


def loop_figures(facts: DiskFacts) -> list[Figure]:
    """Those of its profile, none of which is fitted."""
    return [
        Figure(key="capacity", value=facts.capacity_bytes, low=None, high=None, how=KERNELS_OWN),
        Figure(key="depth", value=facts.queues.depth, low=None, high=None, how=KERNELS_OWN),
    ]


def loop_remark(machine: Machine) -> str:
    """The source of its speed."""
    return (
        f"a thread copies in memory, as fast as the cost table {machine.name} says; "
        "`blklab calibrate --processor` measures this machine's"
    )


def is_closer(
    one: Mapping[DiskLoad, Logs],
    other: Mapping[DiskLoad, Logs],
    found: Mapping[Row, Observation],
    loads: Sequence[DiskLoad],
) -> bool:
    """Whether the first predictions of the loads' rates have a smaller median error than the second."""
    errors = [
        median(abs(predicted[load]["iops"] - found[load, "iops"].log) for load in loads)
        for predicted in (one, other)
    ]
    return errors[0] < errors[1]


def model_error(
    predicted: Mapping[DiskLoad, Logs], found: Mapping[Row, Observation], loads: Sequence[DiskLoad]
) -> float:
    """Scatter of the loads' rates around the predictions beyond that of the measurements."""
    misfit = np.array([predicted[load]["iops"] - found[load, "iops"].log for load in loads])
    errors = np.array([found[load, "iops"].error for load in loads])
    return excess_scatter(misfit, errors, len(loads))
