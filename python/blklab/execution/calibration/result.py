"""The result of a calibration: the table, how sure each figure is, and how well it predicts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from blklab.execution.calibration.fit import BASELINE, Fit, Observation, parameters_of
from blklab.execution.calibration.loads import Load
from blklab.execution.calibration.prediction import predicted_iops
from blklab.spec.machines import Machine


@dataclass(frozen=True)
class Prediction:
    """Measured and predicted ratio to the rate without a scheduler."""

    load: Load
    scheduler: str
    measured: float
    measured_error: float
    """Relative standard error."""
    predicted: float

    @property
    def error(self) -> float:
        """Of the prediction, relative, without sign."""
        return abs(math.log(self.predicted / self.measured))


def predictions(machine: Machine, observations: Sequence[Observation]) -> list[Prediction]:
    """Measured loads beside the table's predictions."""
    cells = [(one.load, scheduler) for one in observations for scheduler in (BASELINE, *one.ratios)]
    iops = predicted_iops(cells, machine)
    return [
        Prediction(
            load=one.load,
            scheduler=scheduler,
            measured=ratio,
            measured_error=error,
            predicted=iops[(one.load, scheduler)] / iops[(one.load, BASELINE)],
        )
        for one in observations
        for scheduler, (ratio, error) in one.ratios.items()
    ]


def table_text(fit: Fit, *, summary: str, remarks: Sequence[str]) -> str:
    """The table as a TOML file, each figure with its interval.

    Args:
        fit: The fitted table.
        summary: A line about the machine.
        remarks: Lines of its head: when and on what it was measured, and how well it predicts.
    """
    machine = fit.machine
    intervals = _intervals(fit)
    lines = [f"# {remark}" for remark in remarks]
    lines += [
        f'name = "{machine.name}"',
        f'summary = "{_quoted(summary)}"',
        f"cpus = {machine.cpus}",
        *_figures([("slice_ns", machine.slice_ns)], intervals, ()),
        "",
        "[steps]",
        *_figures(machine.steps, intervals, ("steps",)),
    ]
    for name, costs in machine.schedulers.items():
        lines += ["", f"[schedulers.{name}]", *_figures(costs, intervals, ("schedulers", name))]
    return "\n".join([*lines, ""])


def _figures(
    figures: Iterable[tuple[str, int]],
    intervals: Mapping[tuple[str, ...], tuple[float, float]],
    table: tuple[str, ...],
) -> list[str]:
    lines = []
    for name, value in figures:
        if value == 0:
            continue
        interval = intervals.get((*table, name))
        remark = "" if interval is None else f"  # {interval[0]:.0f} to {interval[1]:.0f}"
        lines.append(f"{name} = {value}{remark}")
    return lines


def _intervals(fit: Fit) -> dict[tuple[str, ...], tuple[float, float]]:
    """The interval of each fitted figure, by its place in the file."""
    found = {}
    dumped = fit.machine.model_dump()
    for parameter in parameters_of(fit.machine):
        factor, low, high = fit.factors[parameter.name]
        table: Any = dumped
        for name in parameter.table:
            table = table[name]
        for figure in parameter.figures:
            place = (*parameter.table, figure)
            at = table[figure] / factor
            found[place] = (at * low, at * high)
    return found


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
