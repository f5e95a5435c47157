"""Arranges values by their design: a stratum per metric and condition, and a series per level in it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from blklab.analysis.metrics import Better
from blklab.errors import DesignError
from blklab.labs.reanalysis.design import GIVEN_ORDER, TIME_ORDER, DataDesign
from blklab.labs.reanalysis.readers.protocol import Location, Measurement, Problem
from blklab.labs.reanalysis.readers.units import converted

ALL_VALUES = "all"
"""The single level if nothing is compared."""


@dataclass(frozen=True)
class Observation:
    """One value and its position in the design."""

    value: float
    block: tuple[str, ...]
    within: tuple[str, ...]
    """Levels of the factors to average over."""
    run: str | None
    order: float | None
    location: Location


@dataclass
class Stratum:
    """Values of one metric under one condition."""

    metric: str
    unit: str
    better: Better | None
    condition: dict[str, str]
    series: dict[str, list[Observation]] = field(default_factory=dict)
    """By level, in chronological order if `order_known`."""
    order_known: bool = False
    order_across_levels: bool = False
    """Whether the order also holds between levels."""

    @property
    def title(self) -> str:
        """The metric and its condition."""
        return ", ".join([self.metric, *(f"{name} {value}" for name, value in self.condition.items())])

    def values(self, level: str) -> list[float]:
        """A level's values."""
        return [one.value for one in self.series[level]]


def arrange_strata(
    measurements: Sequence[Measurement], design: DataDesign
) -> tuple[list[Stratum], list[Problem], list[str]]:
    """Puts the measurements of one metric into strata.

    Returns:
        The strata, problems (values that were left out), and notes.

    Raises:
        DesignError: if units cannot be converted, or two values have the same position in the design.
    """
    problems: list[Problem] = []
    notes: list[str] = []
    unit = _common_unit(measurements, notes)
    strata: dict[tuple[str, ...], Stratum] = {}
    orders: dict[tuple[tuple[str, ...], str], list[float]] = {}
    seen: dict[tuple[object, ...], tuple[float, Location]] = {}
    for position, one in enumerate(measurements):
        condition = {name: one.factors.get(name, "") for name in design.conditions}
        key = tuple(condition.values())
        stratum = strata.setdefault(key, Stratum(one.metric, unit, one.better, condition))
        level = ALL_VALUES if design.factor is None else one.factors.get(design.factor, "")
        observation = Observation(
            value=_in_unit(one, unit),
            block=tuple(one.factors.get(name, "") for name in design.block),
            within=tuple(one.factors.get(name, "") for name in design.average),
            run=one.factors.get(design.run, "") if design.run else None,
            order=_position(one, design, position),
            location=one.location,
        )
        if _is_repeated(observation, (key, level), design, seen, problems):
            continue
        stratum.series.setdefault(level, []).append(observation)
        if observation.order is not None:
            orders.setdefault((key, level), []).append(observation.order)
    for key, stratum in strata.items():
        _settle_order(stratum, [orders.get((key, level), []) for level in stratum.series], design)
    return list(strata.values()), problems, notes


def _is_repeated(
    one: Observation,
    where: tuple[tuple[str, ...], str],
    design: DataDesign,
    seen: dict[tuple[object, ...], tuple[float, Location]],
    problems: list[Problem],
) -> bool:
    """Whether the position is already taken: by the same value (left out) or by another one (an error)."""
    if design.run is None and not (design.block and design.factor is not None):
        return False
    key = (*where, one.block, one.within, one.run)
    before = seen.setdefault(key, (one.value, one.location))
    if before[1] == one.location:
        return False
    what = ", ".join(filter(None, [where[1], *one.block, *one.within, f"run {one.run}" if one.run else ""]))
    if before[0] == one.value:
        problems.append(Problem(one.location, f"repeats {before[1]} ({what}); counts once"))
        return True
    raise DesignError(
        f"{one.location} and {before[1]}: two values for {what}",
        hint="give a factor that distinguishes them a role with --by, --average, --run or --factor, "
        "or select one value with --where NAME=VALUE",
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
            f"{one.location}: {one.metric} in {one.unit or 'no unit'}, but in {unit or 'no unit'} elsewhere",
            hint="analyse the files separately, or select some values with --where",
        )
    return value


def _position(one: Measurement, design: DataDesign, position: int) -> float | None:
    if design.order is None:
        return None
    if design.order == GIVEN_ORDER:
        return float(position)
    if design.order == TIME_ORDER:
        return None if one.position is None else float(one.position)
    try:
        order = float(one.factors.get(design.order, ""))
    except ValueError:
        return None
    return order if math.isfinite(order) else None


def _settle_order(stratum: Stratum, orders: Sequence[list[float]], design: DataDesign) -> None:
    """Sorts by order if every value of a level has its own."""
    complete = all(
        len(known) == len(series) and len(set(known)) == len(known)
        for known, series in zip(orders, stratum.series.values(), strict=True)
    )
    if design.order is None or not complete:
        return
    stratum.order_known = True
    everything = [order for known in orders for order in known]
    stratum.order_across_levels = len(set(everything)) == len(everything)
    for series in stratum.series.values():
        series.sort(key=lambda one: one.order or 0.0)


def matched(
    stratum: Stratum, first: str, second: str, *, logarithmic: bool
) -> tuple[list[float], list[float], int]:
    """Values of two levels in each common block, averaged over the positions that both have.

    Args:
        stratum: The stratum.
        first: A level.
        second: Another level.
        logarithmic: Average and return logarithms.

    Returns:
        One value per common block for each level, and the number of values without a counterpart.
    """
    one, other = ({(o.block, o.within): o.value for o in stratum.series[level]} for level in (first, second))
    common = [key for key in one if key in other]
    blocks: dict[tuple[str, ...], list[tuple[float, float]]] = {}
    for key in common:
        pair = (one[key], other[key])
        blocks.setdefault(key[0], []).append((math.log(pair[0]), math.log(pair[1])) if logarithmic else pair)
    means = [[sum(side) / len(side) for side in zip(*pairs, strict=True)] for pairs in blocks.values()]
    alone = len(one) + len(other) - 2 * len(common)
    return [mean[0] for mean in means], [mean[1] for mean in means], alone


def block_means(stratum: Stratum, level: str, *, logarithmic: bool) -> list[float]:
    """A level's mean in each block; without blocks, each of its values."""
    blocks: dict[object, list[float]] = {}
    for index, one in enumerate(stratum.series[level]):
        value = math.log(one.value) if logarithmic else one.value
        blocks.setdefault(one.block or index, []).append(value)
    return [sum(values) / len(values) for values in blocks.values()]


def with_shares(stratum: Stratum, problems: list[Problem]) -> Stratum:
    """Converts each value to its percentage of the block's sum over all levels.

    Blocks that lack a level are left out and reported as problems.
    """
    totals: dict[tuple[object, ...], dict[str, float]] = {}
    for level, series in stratum.series.items():
        for one in series:
            totals.setdefault((one.block, one.within), {})[level] = one.value
    shares = Stratum(f"share of {stratum.metric}", "%", None, stratum.condition)
    for level, series in stratum.series.items():
        for one in series:
            parts = totals[one.block, one.within]
            total = sum(parts.values())
            if len(parts) < len(stratum.series) or total <= 0:
                problems.append(Problem(one.location, "its block lacks a level, so it has no share"))
                continue
            share = 100 * one.value / total
            shares.series.setdefault(level, []).append(
                Observation(share, one.block, one.within, one.run, one.order, one.location)
            )
    return shares
