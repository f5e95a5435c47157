"""Settles the design of the values in a file: what was compared, what is a run, which values belong together.

A tool's reader knows the role of most factors. It cannot know which of two columns was compared, or whether
runs with the same number belong together. Such a role is never guessed: it either follows from the values in
exactly one way, and the report says so, or the user must name it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from blklab.errors import DesignError
from blklab.labs.reanalysis.readers.protocol import Measurement, Role

ComparisonScale = Literal["difference", "ratio"]

FILE = "file"
"""Factor that distinguishes files; its levels are their names."""
LABEL = "label"
"""Factor that ``--label FILE=NAME`` adds."""
RUN = "run"
"""Factor that counts repetitions in a file that a tool wrote in chronological order."""
SCHEDULER_FACTORS = ("scheduler", "ioscheduler")
"""Factors of schedulers: from a log or a path, and from fio's options."""
GIVEN_ORDER = "given"
TIME_ORDER = "time"
"""The order of the times that the files hold."""

MOST_LEVELS_SHOWN = 6


@dataclass(frozen=True)
class DesignRequest:
    """The user's statements about the design; whatever is None or empty follows from the values."""

    factor: str | None = None
    by: tuple[str, ...] = ()
    block: tuple[str, ...] = ()
    average: tuple[str, ...] = ()
    pool: tuple[str, ...] = ()
    run: str | None = None
    order: str | None = None
    where: Mapping[str, frozenset[str]] = field(default_factory=dict)
    scale: ComparisonScale | None = None
    share: bool = False

    @property
    def named(self) -> list[str]:
        """All factors that the request names."""
        single = [name for name in (self.factor, self.run) if name]
        order = [self.order] if self.order and self.order != GIVEN_ORDER else []
        return [*single, *order, *self.by, *self.block, *self.average, *self.pool, *self.where]


@dataclass(frozen=True)
class DataDesign:
    """The roles of the factors in one kind of values."""

    factor: str | None
    """The compared factor; None if nothing is compared."""
    conditions: tuple[str, ...]
    """Values are compared only if these factors agree."""
    block: tuple[str, ...]
    """Values with the same levels of these factors form a block; differences are taken within blocks."""
    average: tuple[str, ...]
    """Within a block and level, values are averaged over these."""
    run: str | None
    order: str | None
    """`GIVEN_ORDER`, `TIME_ORDER`, the name of a factor, or None if the order is unknown."""
    scale: ComparisonScale
    share: bool
    reasons: tuple[str, ...]
    """One sentence on how each role was settled."""


def infer_design(
    measurements: Sequence[Measurement],
    roles: Mapping[str, Role],
    request: DesignRequest,
    *,
    chronological: bool,
    files_chronological: bool = False,
) -> DataDesign:
    """Settles the roles of all factors in the measurements of one metric.

    Args:
        measurements: Measurements of one metric; at least one.
        roles: The roles that the reader knows.
        request: The roles that the user names.
        chronological: Whether the measurements are in the order of the runs.
        files_chronological: Whether they are within each file.

    Raises:
        DesignError: if more than one design is possible; the hint names the options that settle it.
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
            reasons.append(f"values with the same {name} form a block, because the tool took them at once")
    conditions += _separate_settings(measurements, varying, roles, request, factor, conditions, reasons)
    reasons += _reasons(factor, conditions, block, request, levels)
    if request.factor is not None and factor is None:
        pooled = [name for name in varying if name not in taken and roles.get(name) == "level"]
        reasons += [f"all levels of {name} are pooled" for name in pooled]
    run = request.run if request.run in levels else None
    timed = all(one.position is not None for one in measurements)
    in_files = files_chronological and factor in (FILE, LABEL) and _each_in_one_file(measurements, factor)
    if in_files and RUN in levels and not run:
        ordered_by: str | None = RUN
    else:
        ordered_by = run
    design = DataDesign(
        factor=factor,
        conditions=tuple(conditions),
        block=block,
        average=tuple(name for name in request.average if name in levels),
        run=run,
        order=_order(levels, request, ordered_by, reasons, chronological=chronological, timed=timed),
        scale=request.scale or ("ratio" if block and not request.share else "difference"),
        share=request.share,
        reasons=tuple(reasons),
    )
    if request.share and not block:
        raise DesignError("--share needs blocks in which to take shares", hint="name them: --block COLUMN")
    _check_unassigned(measurements, design, varying, roles, request)
    return design


def _separate_settings(
    measurements: Sequence[Measurement],
    varying: Sequence[str],
    roles: Mapping[str, Role],
    request: DesignRequest,
    factor: str | None,
    conditions: Sequence[str],
    reasons: list[str],
) -> list[str]:
    """The settings that keep values apart: those that do not follow from factors with a role."""
    # A file determines everything, but files are put together to be compared under equal settings.
    given = (request.run, *request.block, *request.average, *request.pool)
    assigned = [name for name in given if name and name != FILE]
    separate: list[str] = []
    for name in varying:
        if roles.get(name) != "setting" or name in (*assigned, *conditions, factor):
            continue
        if _determined(measurements, name, (*conditions, *assigned, *separate)):
            continue
        if factor is not None and _determined(measurements, name, (factor, *conditions, *separate)):
            if request.factor == factor and factor not in (FILE, LABEL, *SCHEDULER_FACTORS):
                reasons.append(f"{name} goes with {factor}")
                continue
            reasons.append(
                f"{name} differs between levels of {factor}, which are not compared then (--pool {name} does)"
            )
        separate.append(name)
    return separate


def levels_of(measurements: Sequence[Measurement]) -> dict[str, list[str]]:
    """Each factor's levels in order of appearance."""
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
        reasons.append("no comparison, as requested")
        return None
    if request.factor is not None:
        if request.factor not in levels:
            reasons.append(f"no comparison: these values have no {request.factor}")
            return None
        reasons.append(f"compared: {request.factor}, as requested")
        return request.factor
    settled = {request.run, request.order, *request.by, *request.block, *request.average, *request.pool}
    candidates = [
        name for name in varying if name not in settled and (name not in roles or roles[name] == "level")
    ]
    different = _without_aliases(measurements, candidates)
    different = _without_cells(measurements, different, varying, roles, reasons)
    if not different:
        reasons.append("no comparison: no factor varies that could have been compared")
        return None
    if len(different) == 1:
        reasons.append(f"compared: {different[0]}, the only factor that varies")
        return different[0]
    described = "; ".join(
        f"{name} ({len(levels[name])} files)" if name == FILE else f"{name} ({_levels_text(levels[name])})"
        for name in different
    )
    raise DesignError(
        f"several factors vary, and any of them could have been compared: {described}",
        hint="choose one with --factor NAME; settle the others with --by, --block, --run, --pool or "
        "--where NAME=VALUE",
    )


def _without_cells(
    measurements: Sequence[Measurement],
    candidates: list[str],
    varying: Sequence[str],
    roles: Mapping[str, Role],
    reasons: list[str],
) -> list[str]:
    """Candidates without the file, where each file holds one cell of a design that its values describe."""
    if FILE not in candidates:
        return candidates
    others = [name for name in candidates if name != FILE]
    conditions = [name for name in varying if roles.get(name) == "condition"]
    settings = [
        name
        for name in varying
        if roles.get(name) == "setting"
        and not _determined(measurements, name, conditions)
        and _determined(measurements, name, (FILE, *conditions))
    ]
    if not _determined(measurements, FILE, (*others, *conditions, *settings)):
        return candidates
    if others and all(_determined(measurements, name, (FILE,)) for name in others):
        if settings:
            reasons.append(f"each file is a cell: one {' and one '.join([*others, *settings])}")
        return others
    if not others and settings:
        return _without_aliases(measurements, settings)
    return candidates


def _without_aliases(measurements: Sequence[Measurement], names: Sequence[str]) -> list[str]:
    """Names without those whose levels map one to one to those of an earlier name."""
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
    """Whether the levels of other factors determine a factor's level."""
    seen: dict[tuple[str, ...], str] = {}
    for one in measurements:
        key = tuple(one.factors.get(other, "") for other in by)
        if seen.setdefault(key, one.factors.get(name, "")) != one.factors.get(name, ""):
            return False
    return True


def _check_unassigned(
    measurements: Sequence[Measurement],
    design: DataDesign,
    varying: Sequence[str],
    roles: Mapping[str, Role],
    request: DesignRequest,
) -> None:
    """Checks that every factor that varies has a role or is determined by factors with one."""
    order = () if design.order in (None, GIVEN_ORDER, TIME_ORDER) else (design.order,)
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
            f"{name} varies ({shown}) and has no role",
            hint=f"--by {name}: compare only equal levels; --block {name}: equal levels form a block; "
            f"--run {name}: it numbers the runs; --pool {name}: it does not matter; "
            f"--where {name}=VALUE: use only these",
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
        reasons.append(f"each {' and '.join(conditions)} separately")
    if request.block and factor is not None:
        reasons.append(f"values with the same {' and '.join(block)} form a block, as requested")
    if request.average:
        reasons.append(f"averaged over {' and '.join(request.average)} within blocks, as requested")
    if pooled := [name for name in request.pool if name in levels]:
        reasons.append(f"{' and '.join(pooled)} pooled, as requested")
    for name, values in request.where.items():
        reasons.append(f"only {name} {' or '.join(sorted(values))}, as requested")
    if not block and factor is not None:
        reasons.append("runs are independent: no factor puts them into blocks")
    return reasons


def _order(
    levels: Mapping[str, list[str]],
    request: DesignRequest,
    run: str | None,
    reasons: list[str],
    *,
    chronological: bool,
    timed: bool,
) -> str | None:
    if request.order == GIVEN_ORDER:
        reasons.append("in the given order, as requested")
        return GIVEN_ORDER
    if request.order is not None:
        if request.order not in levels:
            return None
        _require_numbers(levels[request.order], request.order)
        reasons.append(f"in the order of {request.order}, as requested")
        return request.order
    order: str | None = None
    if chronological:
        reasons.append("in the order of the file, as the tool writes it")
        order = GIVEN_ORDER
    elif timed:
        reasons.append("in the order of the times in the files")
        order = TIME_ORDER
    elif run is not None and all(map(_is_number, levels[run])):
        what = "its file, as the tool writes it" if run == RUN and run != request.run else run
        reasons.append(f"runs of one level are in the order of {what}")
        order = run
    else:
        reasons.append("the order of the runs is unknown, so drift cannot be detected (--order settles it)")
    return order


def _each_in_one_file(measurements: Sequence[Measurement], factor: str) -> bool:
    """Whether no level's values come from more than one file."""
    files: dict[str, str] = {}
    return all(
        files.setdefault(one.factors.get(factor, ""), one.location.file) == one.location.file
        for one in measurements
    )


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
