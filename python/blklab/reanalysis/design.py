"""What the figures of a file are: what was compared, what is a run, which belong together, in which order.

A tool's reader knows what most of its factors are. What it cannot know (which of two columns was compared,
whether runs of the same number belong together) is never guessed: it follows from the figures in exactly
one way, which is then said, or it is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from blklab.errors import DesignError
from blklab.reanalysis.readers.protocol import Measurement, Role

Scale = Literal["difference", "ratio"]

FILE = "file"
"""Factor that tells files apart; its levels are their names, or the labels that were given."""
LABEL = "label"
"""Factor that ``--label FILE=NAME`` makes."""
RUN = "run"
"""Factor that counts the repetitions of one thing in a file that a tool wrote in order of time."""
GIVEN_ORDER = "given"

MOST_LEVELS_SHOWN = 6


@dataclass(frozen=True)
class DesignRequest:
    """What a person says of the design; nothing is what is to follow from the figures."""

    factor: str | None = None
    by: tuple[str, ...] = ()
    block: tuple[str, ...] = ()
    average: tuple[str, ...] = ()
    pool: tuple[str, ...] = ()
    run: str | None = None
    order: str | None = None
    where: Mapping[str, frozenset[str]] = field(default_factory=dict)
    scale: Scale | None = None
    share: bool = False

    @property
    def named(self) -> list[str]:
        """All factors that it names."""
        single = [name for name in (self.factor, self.run) if name]
        order = [self.order] if self.order and self.order != GIVEN_ORDER else []
        return [*single, *order, *self.by, *self.block, *self.average, *self.pool, *self.where]


@dataclass(frozen=True)
class FactorRoles:
    """The roles of the factors of one kind of figures."""

    factor: str | None
    """What was compared; nothing if only one thing was measured."""
    conditions: tuple[str, ...]
    """Figures are compared only where these agree."""
    block: tuple[str, ...]
    """Figures that agree in these belong together: differences are taken within."""
    average: tuple[str, ...]
    """Within a block and level, figures are averaged over these."""
    run: str | None
    order: str | None
    """`GIVEN_ORDER`, a factor's name, or nothing where the order is not known."""
    scale: Scale
    share: bool
    reasons: tuple[str, ...]
    """How each part was settled, for the reader."""


def infer(
    measurements: Sequence[Measurement],
    roles: Mapping[str, Role],
    request: DesignRequest,
    *,
    chronological: bool,
    files_chronological: bool = False,
) -> FactorRoles:
    """Settles the roles of all factors of some measurements of one metric.

    Args:
        measurements: Of one metric; at least one.
        roles: What the reader knows of its factors.
        request: What the person says.
        chronological: Whether the order of the measurements is that of the runs.
        files_chronological: Whether it is so within each file.

    Raises:
        DesignError: where more than one design would do, with the options that settle it.
    """
    levels = levels_of(measurements)
    varying = [name for name, values in levels.items() if len(values) > 1]
    reasons: list[str] = []
    factor = _factor(measurements, varying, levels, roles, request, reasons)
    taken = {request.run, request.order, factor, *request.block, *request.average, *request.pool}
    block = tuple(name for name in request.block if name in levels)
    conditions = [name for name in request.by if name in levels and name != factor]
    for name in varying:
        if name in taken or name in conditions or name not in roles:
            continue
        if roles[name] == "condition":
            conditions.append(name)
        elif roles[name] == "block" and not request.block and factor is not None:
            block = (name,)
            reasons.append(f"figures of one {name} belong together, because the tool took them at once")
    reasons += _reasons(factor, conditions, block, request, levels)
    if request.factor is not None and factor is None:
        pooled = [name for name in varying if name not in taken and roles.get(name) == "level"]
        reasons += [f"figures of all levels of {name} taken together" for name in pooled]
    run = request.run if request.run in levels else None
    if files_chronological and factor in (FILE, LABEL) and RUN in levels and not run:
        ordered_by: str | None = RUN
    else:
        ordered_by = run
    design = FactorRoles(
        factor=factor,
        conditions=tuple(conditions),
        block=block,
        average=tuple(name for name in request.average if name in levels),
        run=run,
        order=_order(levels, request, ordered_by, reasons, chronological=chronological),
        scale=request.scale or ("ratio" if block and not request.share else "difference"),
        share=request.share,
        reasons=tuple(reasons),
    )
    if request.share and not block:
        raise DesignError(
            "--share needs blocks within which shares are taken", hint="name them: --block COLUMN"
        )
    _check_unassigned(measurements, design, varying, roles, request)
    return design


def levels_of(measurements: Sequence[Measurement]) -> dict[str, list[str]]:
    """Each factor's levels, in the order in which they appear."""
    levels: dict[str, dict[str, None]] = {}
    for measurement in measurements:
        for name, value in measurement.factors.items():
            levels.setdefault(name, {})[value] = None
    count = len(measurements)
    for name, values in levels.items():
        if sum(name in one.factors for one in measurements) < count:
            values.setdefault("", None)
    return {name: list(values) for name, values in levels.items()}


def _factor(
    measurements: Sequence[Measurement],
    varying: Sequence[str],
    levels: Mapping[str, list[str]],
    roles: Mapping[str, Role],
    request: DesignRequest,
    reasons: list[str],
) -> str | None:
    if request.factor == "none":
        reasons.append("nothing is compared, as asked")
        return None
    if request.factor is not None:
        if request.factor not in levels:
            reasons.append(f"nothing is compared: these figures have no {request.factor}")
            return None
        reasons.append(f"compared: {request.factor}, as asked")
        return request.factor
    settled = {request.run, request.order, *request.by, *request.block, *request.average, *request.pool}
    candidates = [
        name for name in varying if name not in settled and (name not in roles or roles[name] == "level")
    ]
    different = _without_aliases(measurements, candidates)
    if not different:
        reasons.append("nothing varies that could have been compared")
        return None
    if len(different) == 1:
        reasons.append(f"compared: {different[0]}, the only thing that varies")
        return different[0]
    described = "; ".join(f"{name} ({_levels_text(levels[name])})" for name in different)
    raise DesignError(
        f"several things vary, and any could have been compared: {described}",
        hint="--factor NAME says which; --by, --block, --run, --pool or --where NAME=VALUE settle the others",
    )


def _without_aliases(measurements: Sequence[Measurement], names: Sequence[str]) -> list[str]:
    """Names without those that say the same as an earlier one."""
    kept: list[str] = []
    for name in names:
        same = any(
            _determined(measurements, name, (other,)) and _determined(measurements, other, (name,))
            for other in kept
        )
        if not same:
            kept.append(name)
    return kept


def _determined(measurements: Sequence[Measurement], name: str, by: Sequence[str]) -> bool:
    """Whether a factor's level follows from the levels of others."""
    seen: dict[tuple[str, ...], str] = {}
    for one in measurements:
        key = tuple(one.factors.get(other, "") for other in by)
        if seen.setdefault(key, one.factors.get(name, "")) != one.factors.get(name, ""):
            return False
    return True


def _check_unassigned(
    measurements: Sequence[Measurement],
    design: FactorRoles,
    varying: Sequence[str],
    roles: Mapping[str, Role],
    request: DesignRequest,
) -> None:
    """Every factor that varies has a role, or follows from those that have one."""
    order = () if design.order in (None, GIVEN_ORDER) else (design.order,)
    assigned = [
        name
        for name in (
            design.factor,
            design.run,
            *order,
            *design.conditions,
            *design.block,
            *design.average,
            *request.pool,
        )
        if name
    ]
    for name in varying:
        if name in assigned or roles.get(name) in ("description", "block"):
            continue
        if assigned and _determined(measurements, name, assigned):
            continue
        if request.factor is not None and design.factor is None and roles.get(name) == "level":
            continue
        shown = _levels_text(levels_of(measurements)[name])
        raise DesignError(
            f"{name} varies ({shown}), and what it means is not said",
            hint=f"--by {name}: compare only where it agrees; --block {name}: what agrees in it belongs "
            f"together; --run {name}: it numbers the runs; --pool {name}: it does not matter; "
            f"--where {name}=VALUE: only those",
        )


def _reasons(
    factor: str | None,
    conditions: Sequence[str],
    block: Sequence[str],
    request: DesignRequest,
    levels: Mapping[str, list[str]],
) -> list[str]:
    reasons = []
    if conditions:
        reasons.append(f"each {' and '.join(conditions)} for itself")
    if request.block and factor is not None:
        reasons.append(f"figures that agree in {' and '.join(block)} belong together, as asked")
    if request.average:
        reasons.append(f"averaged over {' and '.join(request.average)} within them, as asked")
    if pooled := [name for name in request.pool if name in levels]:
        reasons.append(f"{' and '.join(pooled)} taken as of no matter, as asked")
    for name, values in request.where.items():
        reasons.append(f"only {name} {' or '.join(sorted(values))}, as asked")
    if not block and factor is not None:
        reasons.append("runs are independent of one another: nothing says which belong together")
    return reasons


def _order(
    levels: Mapping[str, list[str]],
    request: DesignRequest,
    run: str | None,
    reasons: list[str],
    *,
    chronological: bool,
) -> str | None:
    if request.order == GIVEN_ORDER:
        reasons.append("made in the order given, as asked")
        return GIVEN_ORDER
    if request.order is not None:
        if request.order not in levels:
            return None
        _require_numbers(levels[request.order], request.order)
        reasons.append(f"made in the order of {request.order}, as asked")
        return request.order
    if chronological:
        reasons.append("made in the order of the file, as the tool writes it")
        return GIVEN_ORDER
    if run is not None and all(map(_is_number, levels[run])):
        what = "its file, as the tool writes it" if run == RUN and run != request.run else run
        reasons.append(f"runs of one level were made in the order of {what}")
        return run
    reasons.append("the order of the runs is not known: drift cannot be looked for (--order settles it)")
    return None


def _require_numbers(values: Sequence[str], name: str) -> None:
    bad = next((value for value in values if not _is_number(value)), None)
    if bad is not None:
        raise DesignError(f"--order {name}: {bad!r} is not a number")


def _is_number(text: str) -> bool:
    try:
        return float(text) == float(text)
    except ValueError:
        return False


def _levels_text(values: Sequence[str]) -> str:
    shown = ", ".join(value or "(none)" for value in values[:MOST_LEVELS_SHOWN])
    more = len(values) - MOST_LEVELS_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
