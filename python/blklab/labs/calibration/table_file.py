"""Fitted cost tables as files: each figure with its interval."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from blklab.labs.calibration.fit import Fit, parameters_of


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
        *_figures([("slice_ns", machine.slice_ns), ("punt_ns", machine.punt_ns)], intervals, ()),
        f"plug_reads = {str(machine.plug_reads).lower()}",
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
