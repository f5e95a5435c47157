"""Fits a cost table to measured I/Os a second, by least squares around the figures of an ordinary machine.

Each parameter is a factor on one or several figures of the starting table. Its logarithm has a normal prior,
so that figures that the loads tell nothing about stay what they were, with an interval as wide as the prior.
What is fitted is, for each load, the rate without a scheduler, and for each scheduler its ratio to that: a
machine's speed wanders from minute to minute, while ratios within a round do not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from blklab.labs.calibration.loads import ProcessorLoad
from blklab.labs.calibration.pattern_search import Floats, Residuals, half_widths, searched
from blklab.labs.calibration.prediction import Cell, predicted_iops
from blklab.spec.machines import Machine, StepCosts

BASELINE = "none"
PRIOR_DEVIATION = 1.0
"""Of the logarithm of each factor: a figure is within a factor of 7 of the starting table's in 95 of 100."""
MODEL_ERROR = 0.03
"""Relative error of a ratio that the model is allowed, in addition to that of the measurement."""
BASELINE_ERROR = 0.06
"""The same of the rate without a scheduler."""
_SCALES = np.arange(-1.0, 2.01, 0.25)
"""Logarithms of the factors on all figures that are tried."""
_LOCKED = "locked_percent"


@dataclass(frozen=True)
class Parameter:
    """A factor on figures of a table."""

    name: str
    """Such as ``steps.wake_ns`` or ``schedulers.bfq``: one figure, or all hooks of a scheduler."""
    table: tuple[str, ...]
    """Where in the file the figures are: ``("schedulers", "bfq")``."""
    figures: tuple[str, ...]
    scales: bool = True
    """Whether it changes with the speed of the machine."""

    def applied(self, table: dict[str, Any], factor: float) -> None:
        """Multiplies the figures of a dumped table."""
        for name in self.table:
            table = table[name]
        for name in self.figures:
            table[name] = round(table[name] * factor)


@dataclass(frozen=True)
class CostObservation:
    """Measured rates of a load."""

    load: ProcessorLoad
    iops: float
    """Without a scheduler."""
    iops_error: float
    """Relative standard error."""
    ratios: Mapping[str, tuple[float, float]]
    """By scheduler: ratio to the rate without one, and its relative standard error."""


@dataclass(frozen=True)
class Fit:
    """A fitted table."""

    machine: Machine
    factors: Mapping[str, tuple[float, float, float]]
    """By parameter: the factor on the starting table, and its 95 % interval."""


def parameters_of(machine: Machine) -> list[Parameter]:
    """The slice, what else costs something: a punt, each step, and all hooks of a scheduler together."""
    slices = [Parameter("slice_ns", (), ("slice_ns",), scales=False)] if machine.slice_ns else []
    punts = [Parameter("punt_ns", (), ("punt_ns",))] if machine.punt_ns else []
    steps = [
        Parameter(f"steps.{name}", ("steps",), (name,))
        for name in StepCosts.model_fields
        if getattr(machine.steps, name) > 0
    ]
    hooks = [
        Parameter(
            f"schedulers.{name}",
            ("schedulers", name),
            tuple(hook for hook, cost in costs if cost > 0 and hook != _LOCKED),
        )
        for name, costs in sorted(machine.schedulers.items())
    ]
    return [*slices, *punts, *steps, *hooks]


def fitted(ordinary: Machine, observations: Sequence[CostObservation]) -> Fit:
    """The table under which the simulator gives what was observed, nearest to an ordinary one.

    At first all figures change together, by one factor: machines differ in speed more than in kind. The
    factors of the result are on the table of that speed. Whether reads are plugged is found there too,
    because releases do not tell: distributions backport such patches.
    """
    parameters = parameters_of(ordinary)
    start = _start(ordinary, parameters, observations)
    residuals = _residuals(start, parameters, observations)
    found = searched(residuals, len(parameters))
    factors = {
        parameter.name: (math.exp(log), math.exp(log - half), math.exp(log + half))
        for parameter, log, half in zip(parameters, found, half_widths(residuals, found), strict=True)
    }
    return Fit(machine=_with_factors(start, parameters, found), factors=factors)


def _start(
    ordinary: Machine, parameters: Sequence[Parameter], observations: Sequence[CostObservation]
) -> Machine:
    """The table of one speed and one way to submit reads that fits best."""
    speeds = [scale * np.array([parameter.scales for parameter in parameters]) for scale in _SCALES]
    tried: list[tuple[float, Machine]] = []
    for plug_reads in (False, True):
        machine = ordinary.model_copy(update={"plug_reads": plug_reads})
        residuals = _residuals(machine, parameters, observations)
        tried += [
            (_misfit(residuals(logs), len(parameters)), _with_factors(machine, parameters, logs))
            for logs in speeds
        ]
    return min(tried, key=lambda one: one[0])[1]


def _residuals(
    start: Machine, parameters: Sequence[Parameter], observations: Sequence[CostObservation]
) -> Residuals:
    cells: list[Cell] = [
        (one.load, scheduler) for one in observations for scheduler in (BASELINE, *one.ratios)
    ]

    def residuals(logs: Floats) -> Floats:
        iops = predicted_iops(cells, _with_factors(start, parameters, logs))
        found = list(logs / PRIOR_DEVIATION)
        for one in observations:
            base = iops[(one.load, BASELINE)]
            found.append(math.log(base / one.iops) / math.hypot(one.iops_error, BASELINE_ERROR))
            found += [
                math.log(iops[(one.load, scheduler)] / base / ratio) / math.hypot(error, MODEL_ERROR)
                for scheduler, (ratio, error) in one.ratios.items()
            ]
        return np.array(found)

    return residuals


def _misfit(residuals: Floats, nr_parameters: int) -> float:
    """Sum of squares, without the prior's."""
    return float(np.sum(residuals[nr_parameters:] ** 2))


def _with_factors(start: Machine, parameters: Sequence[Parameter], logs: Floats) -> Machine:
    table = start.model_dump()
    for parameter, log in zip(parameters, logs, strict=True):
        parameter.applied(table, math.exp(float(log)))
    return Machine.model_validate(table)
