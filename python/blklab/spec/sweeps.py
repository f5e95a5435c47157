"""Sweeps of tunables: ``bfq:slice_idle=0,2,8,20``, or several tunables as a full factorial.

Attributes of the queue and settings of writeback are swept like tunables: ``none:nr_requests=32,64``,
``none:vm.dirty_ratio=5,10``.

Every combination of the tunables' levels becomes a scheduler of the experiment, next to all others and in
the same blocks. The default is always one level of each tunable, so that the scheduler as the kernel sets it
up is among the cells.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence

from pydantic import BaseModel, ConfigDict, model_validator

from blklab.errors import SpecError, TunableError, did_you_mean
from blklab.spec.group_settings import is_group_setting
from blklab.spec.schedulers import SchedulerChoice, check_settings, parse_scheduler_choice

MOST_CELLS = 64
"""Most cells of one sweep: in a longer block the runs would be too far apart in time to compare."""

GRAMMAR_HINT = "write it like bfq:slice_idle=0,2,8 or mq-deadline:fifo_batch=1,64:read_expire=100,1000"


class TunableSweep(BaseModel):
    """Tunables of one scheduler with their levels, without the default."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    base: SchedulerChoice
    """The scheduler that the levels change; tunables that it sets itself replace the target's defaults."""
    levels: dict[str, list[str]]
    """By tunable: values as asked for, in the kernel's units."""
    defaults: dict[str, str] = {}
    """Defaults of the target, once they are known; a level that equals the default is not run twice."""

    @model_validator(mode="after")
    def _follows_the_grammar(self) -> TunableSweep:
        """`cells` makes choices of the levels without checking them again."""
        for name, values in self.levels.items():
            for value in values:
                check_settings({name: value})
        return self

    @property
    def canonical(self) -> str:
        """The sweep in its own grammar."""
        parts = [self.base.without_label]
        parts += [f"{tunable}={','.join(values)}" for tunable, values in self.levels.items()]
        return ":".join(parts)

    def values(self, tunable: str) -> list[str | None]:
        """Levels of a tunable; the default is first, as None."""
        return [None, *(value for value in self.levels[tunable] if value != self.defaults.get(tunable))]

    def cells(self) -> dict[tuple[str | None, ...], SchedulerChoice]:
        """All combinations: the level of each tunable (None: the default) and the resulting scheduler."""
        found = {}
        for combination in itertools.product(*(self.values(tunable) for tunable in self.levels)):
            changed = {
                name: value for name, value in zip(self.levels, combination, strict=True) if value is not None
            }
            choice = self.base.model_copy(update={"tunables": self.base.tunables | changed})
            found[combination] = choice.model_copy(update={"label": choice.without_label})
        return found


def parse_sweep(text: str) -> TunableSweep:
    """Reads ``NAME:TUNABLE=VALUE,VALUE…[:TUNABLE=VALUE…]``.

    Raises:
        SpecError: if it does not follow the grammar, repeats a level, or has too many combinations.
        UsageError: if the scheduler's name does not follow the grammar of schedulers.
    """
    head, *settings = text.strip().split(":")
    if not settings:
        raise SpecError(f"sweep {text!r} names no tunable", hint=GRAMMAR_HINT)
    levels: dict[str, list[str]] = {}
    for setting in settings:
        tunable, separator, listed = setting.partition("=")
        values = [value.strip() for value in listed.split(",")]
        if not (separator and all(values)):
            raise SpecError(f"sweep: {setting!r} in {text!r} is not TUNABLE=VALUE,VALUE…", hint=GRAMMAR_HINT)
        if is_group_setting(tunable):
            raise SpecError(
                f"sweep {text!r}: {tunable} belongs to a control group, which has no default to sweep around",
                hint=f"list the variants: -s {head}:{tunable}={values[0]},…; or let `blklab tune --vary "
                f"{tunable}` search",
            )
        if tunable in levels:
            raise SpecError(f"sweep {text!r} names {tunable} twice")
        if len(set(values)) < len(values):
            raise SpecError(f"sweep: {setting!r} repeats a value")
        levels[tunable] = values
    base = parse_scheduler_choice(head)
    # Names and values follow the grammar of a choice.
    parse_scheduler_choice(":".join([head, *(f"{name}={values[0]}" for name, values in levels.items())]))
    if base.label != base.without_label:
        raise SpecError(f"sweep {text!r}: cells are named by their tunables", hint=GRAMMAR_HINT)
    return checked_sweep(TunableSweep(base=base, levels=levels))


def parse_sweeps(texts: Iterable[str]) -> list[TunableSweep]:
    """Reads several sweeps; those of one scheduler become one, with all its tunables crossed.

    Raises:
        SpecError: as `parse_sweep`, and if a tunable is swept twice.
    """
    merged: dict[str, TunableSweep] = {}
    for text in texts:
        sweep = parse_sweep(text)
        before = merged.get(sweep.base.label)
        if before is not None:
            twice = before.levels.keys() & sweep.levels.keys()
            if twice:
                raise SpecError(f"two sweeps of {sweep.base.label} name {min(twice)}")
            sweep = checked_sweep(before.model_copy(update={"levels": before.levels | sweep.levels}))
        merged[sweep.base.label] = sweep
    return list(merged.values())


def settle_sweep(
    sweep: TunableSweep, tunable_defaults: Callable[[SchedulerChoice], Mapping[str, str] | None]
) -> TunableSweep:
    """The sweep with the defaults of its tunables; a settled sweep stays as it is.

    If the target cannot tell its defaults (a dry run), the sweep stays as it is too.

    Args:
        sweep: The requested sweep.
        tunable_defaults: Asks the target for the default values of a scheduler's tunables and the queue's
            attributes.

    Raises:
        TunableError: if the scheduler lacks one of the tunables.
    """
    if sweep.defaults:
        return sweep
    found = tunable_defaults(sweep.base)
    if found is None:
        return sweep
    for tunable in sweep.levels:
        if tunable not in found:
            raise TunableError(
                f"sweep {sweep.canonical}: {sweep.base.name} has no tunable {tunable!r}",
                hint=did_you_mean(tunable, list(found)) or f"it has {', '.join(sorted(found)) or 'none'}",
            )
    defaults = {**found, **sweep.base.tunables}
    return sweep.model_copy(update={"defaults": {name: defaults[name] for name in sweep.levels}})


def with_sweep_cells(
    choices: Sequence[SchedulerChoice], sweeps: Sequence[TunableSweep]
) -> list[SchedulerChoice]:
    """Schedulers with the cells of all sweeps, without duplicates.

    Raises:
        SpecError: if a label is already taken by another choice.
    """
    found = {choice.label: choice for choice in choices}
    for sweep in sweeps:
        for cell in sweep.cells().values():
            if found.setdefault(cell.label, cell).without_label != cell.without_label:
                raise SpecError(
                    f"the label {cell.label!r} is needed by the sweep {sweep.canonical}",
                    hint="give that scheduler another label",
                )
    return list(found.values())


def checked_sweep(sweep: TunableSweep) -> TunableSweep:
    """The sweep, if it has no more combinations than a block can hold.

    Raises:
        SpecError: if it has more.
    """
    number = len(sweep.cells())
    if number > MOST_CELLS:
        product = " x ".join(str(len(sweep.values(tunable))) for tunable in sweep.levels)
        raise SpecError(
            f"sweep {sweep.canonical}: {product} = {number} combinations with the defaults, at most "
            f"{MOST_CELLS} are possible",
            hint="sweep fewer values at once, or one tunable after the other",
        )
    return sweep
