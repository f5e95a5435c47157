"""Figures arranged by their design: one cell for each metric and condition, series by level within it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from blklab.errors import DesignError
from blklab.reanalysis.design import GIVEN_ORDER, FactorRoles
from blklab.reanalysis.readers.protocol import Better, Measurement, Place, Problem
from blklab.reanalysis.readers.units import converted

ALL = "all"
"""Level of the figures where nothing is compared."""


@dataclass(frozen=True)
class Observation:
    """One figure in its place of the design."""

    value: float
    block: tuple[str, ...]
    within: tuple[str, ...]
    """What is averaged over."""
    run: str | None
    order: float | None
    place: Place


@dataclass
class ConditionSeries:
    """Figures of one metric under one condition."""

    metric: str
    unit: str
    better: Better | None
    condition: dict[str, str]
    series: dict[str, list[Observation]] = field(default_factory=dict)
    """By level, in order where it is known."""
    order_known: bool = False
    order_across_levels: bool = False
    """Whether the order holds between levels too, or within each only."""

    @property
    def title(self) -> str:
        """The metric and its condition."""
        return ", ".join([self.metric, *(f"{name} {value}" for name, value in self.condition.items())])

    def values(self, level: str) -> list[float]:
        """A level's figures."""
        return [one.value for one in self.series[level]]


def arrange(
    measurements: Sequence[Measurement], design: FactorRoles
) -> tuple[list[ConditionSeries], list[Problem], list[str]]:
    """Puts the measurements of one metric into cells.

    Returns:
        The cells; places whose figures were left out; remarks.

    Raises:
        DesignError: where units cannot be converted, or two figures claim one place of the design.
    """
    problems: list[Problem] = []
    notes: list[str] = []
    unit = _common_unit(measurements, notes)
    cells: dict[tuple[str, ...], ConditionSeries] = {}
    orders: dict[tuple[tuple[str, ...], str], list[float]] = {}
    seen: dict[tuple[object, ...], tuple[float, Place]] = {}
    for position, one in enumerate(measurements):
        condition = {name: one.factors.get(name, "") for name in design.conditions}
        key = tuple(condition.values())
        cell = cells.setdefault(key, ConditionSeries(one.metric, unit, one.better, condition))
        level = ALL if design.factor is None else one.factors.get(design.factor, "")
        observation = Observation(
            value=_in_unit(one, unit),
            block=tuple(one.factors.get(name, "") for name in design.block),
            within=tuple(one.factors.get(name, "") for name in design.average),
            run=one.factors.get(design.run, "") if design.run else None,
            order=_position(one, design, position),
            place=one.place,
        )
        if _is_repeated(observation, (key, level), design, seen, problems):
            continue
        cell.series.setdefault(level, []).append(observation)
        if observation.order is not None:
            orders.setdefault((key, level), []).append(observation.order)
    for key, cell in cells.items():
        _settle_order(cell, [orders.get((key, level), []) for level in cell.series], design)
    return list(cells.values()), problems, notes


def _is_repeated(
    one: Observation,
    where: tuple[tuple[str, ...], str],
    design: FactorRoles,
    seen: dict[tuple[object, ...], tuple[float, Place]],
    problems: list[Problem],
) -> bool:
    """Whether this place of the design is taken: by the same figure (left out), or by another (an error)."""
    if design.run is None and not (design.block and design.factor is not None):
        return False
    key = (*where, one.block, one.within, one.run)
    before = seen.setdefault(key, (one.value, one.place))
    if before[1] == one.place:
        return False
    what = ", ".join(filter(None, [where[1], *one.block, *one.within, f"run {one.run}" if one.run else ""]))
    if before[0] == one.value:
        problems.append(Problem(one.place, f"repeats {before[1]} ({what}); counted once"))
        return True
    raise DesignError(
        f"{one.place} and {before[1]}: two figures for {what}",
        hint="a factor that tells them apart needs a role: --by, --average, --run, --factor; "
        "or --where NAME=VALUE takes one of them",
    )


def _common_unit(measurements: Sequence[Measurement], notes: list[str]) -> str:
    counts: dict[str, int] = {}
    for one in measurements:
        counts[one.unit] = counts.get(one.unit, 0) + 1
    unit = max(counts, key=lambda name: counts[name])
    if len(counts) > 1:
        others = " and ".join(sorted(set(counts) - {unit}))
        notes.append(f"{measurements[0].metric}: units differ; {others} converted to {unit}")
    return unit


def _in_unit(one: Measurement, unit: str) -> float:
    value = converted(one.value, one.unit, unit)
    if value is None:
        raise DesignError(
            f"{one.place}: {one.metric} in {one.unit or 'no unit'}, but in {unit or 'no unit'} elsewhere",
            hint="analyse the files apart, or take some with --where",
        )
    return value


def _position(one: Measurement, design: FactorRoles, position: int) -> float | None:
    if design.order is None:
        return None
    if design.order == GIVEN_ORDER:
        return float(position)
    try:
        order = float(one.factors.get(design.order, ""))
    except ValueError:
        return None
    return order if math.isfinite(order) else None


def _settle_order(cell: ConditionSeries, orders: Sequence[list[float]], design: FactorRoles) -> None:
    """Sorts by order, where every figure of a level has one of its own."""
    complete = all(
        len(known) == len(series) and len(set(known)) == len(known)
        for known, series in zip(orders, cell.series.values(), strict=True)
    )
    if design.order is None or not complete:
        return
    cell.order_known = True
    everything = [order for known in orders for order in known]
    cell.order_across_levels = len(set(everything)) == len(everything)
    for series in cell.series.values():
        series.sort(key=lambda one: one.order or 0.0)


def matched(
    cell: ConditionSeries, first: str, second: str, *, logarithmic: bool
) -> tuple[list[float], list[float], int]:
    """Two levels' figures block by block, averaged within blocks over what both have.

    Args:
        cell: The cell.
        first: A level.
        second: Another level.
        logarithmic: Whether to average (and give) logarithms.

    Returns:
        One figure a common block for either level, and the number of figures that had no counterpart.
    """
    one, other = ({(o.block, o.within): o.value for o in cell.series[level]} for level in (first, second))
    common = [key for key in one if key in other]
    blocks: dict[tuple[str, ...], list[tuple[float, float]]] = {}
    for key in common:
        pair = (one[key], other[key])
        blocks.setdefault(key[0], []).append((math.log(pair[0]), math.log(pair[1])) if logarithmic else pair)
    means = [[sum(side) / len(side) for side in zip(*pairs, strict=True)] for pairs in blocks.values()]
    alone = len(one) + len(other) - 2 * len(common)
    return [mean[0] for mean in means], [mean[1] for mean in means], alone


def block_means(cell: ConditionSeries, level: str, *, logarithmic: bool) -> list[float]:
    """A level's mean of each block (each figure for itself where there are no blocks)."""
    blocks: dict[object, list[float]] = {}
    for index, one in enumerate(cell.series[level]):
        value = math.log(one.value) if logarithmic else one.value
        blocks.setdefault(one.block or index, []).append(value)
    return [sum(values) / len(values) for values in blocks.values()]


def with_shares(cell: ConditionSeries, problems: list[Problem]) -> ConditionSeries:
    """The cell with each figure as its percentage of its block's sum over all levels.

    Blocks in which a level is missing are left out, and said.
    """
    totals: dict[tuple[object, ...], dict[str, float]] = {}
    for level, series in cell.series.items():
        for one in series:
            totals.setdefault((one.block, one.within), {})[level] = one.value
    shares = ConditionSeries(f"share of {cell.metric}", "%", None, cell.condition)
    for level, series in cell.series.items():
        for one in series:
            parts = totals[one.block, one.within]
            total = sum(parts.values())
            if len(parts) < len(cell.series) or total <= 0:
                problems.append(Problem(one.place, "its block lacks a level, so there is no share"))
                continue
            share = 100 * one.value / total
            shares.series.setdefault(level, []).append(
                Observation(share, one.block, one.within, one.run, one.order, one.place)
            )
    return shares
