"""Loop devices over memory: their thread copies, and the machine's cost table has the figures of that.

What the table does not tell is fitted: the parts of the thread's usual times that reads and writes take.
Pages are found for the one and allocated for the other, and a machine's speed wanders from one calibration to
the next.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from blklab.labs.calibration.disk.document import KERNELS_OWN, UNDECIDED, Figure
from blklab.labs.calibration.disk.fit import excess_scatter
from blklab.labs.calibration.disk.forward import Forward, Logs
from blklab.labs.calibration.disk.ground import LOOP_KIND, DiskFacts
from blklab.labs.calibration.disk.loads import DiskLoad
from blklab.labs.calibration.disk.observations import DiskObservation, Row
from blklab.labs.calibration.disk.search import tolerated
from blklab.labs.calibration.pattern_search import Floats, half_widths, polished, searched
from blklab.spec.machines import Machine

NOT_COVERED = "whatever the machine's cost table does not describe, such as caches of the processors"
_PRIOR_DEVIATION = 0.5
"""Of the logarithm of each percentage: it is within a factor of 2.7 of the table's in 95 of 100."""
_MODEL_ERROR = 0.05
"""Relative error of a rate that the model is allowed, in addition to that of the measurement."""
_LEAST, _MOST = 1, 10_000
"""Percentages that the device kind takes."""


@dataclass(frozen=True)
class LoopFit:
    """The thread's times in per cent of those of the cost table, with their 95 % intervals."""

    percentages: Mapping[str, int]
    """By key of the profile; those about which the loads say nothing are not here."""
    intervals: Mapping[str, tuple[int, int]]

    def device(self, facts: DiskFacts) -> str:
        """The device as in a target."""
        return _device(facts, self.percentages)

    def figures(self, facts: DiskFacts) -> list[Figure]:
        """Those of its profile."""
        found = [
            Figure(key="capacity", value=facts.capacity_bytes, low=None, high=None, how=KERNELS_OWN),
            Figure(key="depth", value=facts.queues.depth, low=None, high=None, how=KERNELS_OWN),
        ]
        for key in _keys(("read", "write")):
            low, high = self.intervals.get(key, (None, None))
            how = "fitted, of the cost table's" if key in self.percentages else UNDECIDED
            found.append(Figure(key=key, value=self.percentages.get(key, 100), low=low, high=high, how=how))
        return found


def fitted_loop(forward: Forward, found: Mapping[Row, DiskObservation], loads: Sequence[DiskLoad]) -> LoopFit:
    """The percentages under which the simulator gives the loads' rates, nearest to those of the table."""
    directions = [
        name for name in ("read", "write") if any(load.direction in (name, "mixed") for load in loads)
    ]
    keys = _keys(directions)
    measured = np.array([found[load, "iops"].log for load in loads])
    errors = np.array([math.hypot(found[load, "iops"].error, _MODEL_ERROR) for load in loads])

    def residuals(logs: Floats) -> Floats:
        device = _device(forward.facts, _percentages(keys, logs))
        predicted = forward.on_devices(dict.fromkeys(loads, device))
        misfit = (np.array([predicted[load]["iops"] for load in loads]) - measured) / errors
        return np.concatenate([logs / _PRIOR_DEVIATION, tolerated(misfit)])

    logs = polished(residuals, searched(residuals, len(keys)))
    half = half_widths(residuals, logs)
    ends = zip(
        _percentages(keys, logs - half).values(), _percentages(keys, logs + half).values(), strict=True
    )
    return LoopFit(_percentages(keys, logs), dict(zip(keys, ends, strict=True)))


def _keys(directions: Sequence[str]) -> list[str]:
    return [f"{direction}_{part}_percent" for direction in directions for part in ("command", "copy")]


def _percentages(keys: Sequence[str], logs: Floats) -> dict[str, int]:
    return {
        key: min(max(_LEAST, round(100 * math.exp(log))), _MOST) for key, log in zip(keys, logs, strict=True)
    }


def _device(facts: DiskFacts, percentages: Mapping[str, int]) -> str:
    settings = {"capacity": facts.capacity_bytes, "depth": facts.queues.depth, **percentages}
    return ",".join([LOOP_KIND, *(f"{key}={value}" for key, value in settings.items())])


def loop_remark(machine: Machine) -> str:
    """The source of its speed."""
    return (
        f"a thread copies in memory, in parts of the times of the cost table {machine.name}; "
        "`blklab calibrate processor` measures this machine's"
    )


def is_closer(
    one: Mapping[DiskLoad, Logs],
    other: Mapping[DiskLoad, Logs],
    found: Mapping[Row, DiskObservation],
    loads: Sequence[DiskLoad],
) -> bool:
    """Whether the first predictions of the loads' rates have a smaller median error than the second."""
    errors = [
        median(abs(predicted[load]["iops"] - found[load, "iops"].log) for load in loads)
        for predicted in (one, other)
    ]
    return errors[0] < errors[1]


def model_error(
    predicted: Mapping[DiskLoad, Logs], found: Mapping[Row, DiskObservation], loads: Sequence[DiskLoad]
) -> float:
    """Scatter of the loads' rates around the predictions beyond that of the measurements."""
    misfit = np.array([predicted[load]["iops"] - found[load, "iops"].log for load in loads])
    errors = np.array([found[load, "iops"].error for load in loads])
    return excess_scatter(misfit, errors, len(loads))
