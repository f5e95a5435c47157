"""A request for experiments: from a TOML description, from flags, or both; flags win.

docs/reference/experiments.md lists the keys, generated from `OPTIONS`. Options of guests are in a table of
their own (``[guest]``).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from blklab.errors import SpecError
from blklab.named_files import read_text
from blklab.spec.budget import DEFAULT_BUDGET_BLOCKS, NO_LIMITS, limits
from blklab.spec.command_options import with_command_options
from blklab.spec.experiment import DEFAULT_WORKLOADS, OPTIONS, ExperimentSpec
from blklab.spec.forms import each_named_once
from blklab.spec.guest import guest_options
from blklab.spec.mistakes import first_mistake
from blklab.spec.replays import PREFIX, is_replay
from blklab.spec.workloads import COMMAND_SUFFIX, Workload

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TABLES = frozenset(option.table for option in OPTIONS if option.table)
"""Names of TOML tables that hold several options; the options in one are given and replaced one by one."""
_TOP_LEVEL = {option.name: option for option in OPTIONS if not option.table}
_SETTLED_APART = {"targets", "workloads", "commands", "blocks", "budget"}
"""Options whose default is no field's default, or that depend on each other."""


class SpecValues:
    """Values from one origin (file or flags), as written; None means not given.

    Args:
        given: Values by the name of the option; options of a table as a dict under the table's name.

    Raises:
        TypeError: for a name that is no option.
    """

    def __init__(self, **given: Any) -> None:
        unknown = given.keys() - _TOP_LEVEL.keys() - TABLES
        if unknown:
            raise TypeError(f"there is no option {min(unknown)}")
        self._given = {name: value for name, value in given.items() if value is not None}

    def get(self, name: str) -> Any:
        """A value as written, or None."""
        return self._given.get(name)

    @property
    def names(self) -> frozenset[str]:
        """Names of the options and tables that are given."""
        return frozenset(self._given)

    def fields(self) -> dict[str, Any]:
        """Fields of `ExperimentSpec` that these values set, but for those that `build_specs` settles.

        Raises:
            BlklabError: for a value that cannot be read.
        """
        return {
            option.field: option.form.read(self.get(name))
            for name, option in _TOP_LEVEL.items()
            if name not in _SETTLED_APART and self.get(name) not in (None, [], {})
        }

    def overlaid_by(self, other: SpecValues) -> SpecValues:
        """These values, replaced by those that `other` gives; blocks and budget replace each other."""
        replaced = {old for name in other.names - TABLES for old in _TOP_LEVEL[name].instead_of}
        merged = {name: value for name, value in self._given.items() if name not in replaced} | other._given
        for table in TABLES & self.names & other.names:
            merged[table] = self.get(table) | other.get(table)
        return SpecValues(**merged)

    def __repr__(self) -> str:
        """The values, as `SpecValues` takes them."""
        return f"SpecValues({', '.join(f'{name}={value!r}' for name, value in self._given.items())})"


def _file_model() -> type[BaseModel]:
    """The TOML file as written: every option by its key, all optional."""
    fields: dict[str, Any] = {name: option.annotation_in_file() for name, option in _TOP_LEVEL.items()}
    fields |= {option.singular: str for option in OPTIONS if option.singular}
    fields |= dict.fromkeys(TABLES, dict[str, str])
    optional: dict[str, Any] = {name: (annotation | None, None) for name, annotation in fields.items()}
    return create_model("_SpecFile", __config__=ConfigDict(extra="forbid", strict=True), **optional)


_SpecFile = _file_model()


def read_spec_file(path: Path) -> SpecValues:
    """Reads a TOML description. Paths of job files in it are relative to the file.

    Raises:
        SpecError: if the file is missing, is not TOML, or has an unknown key or a wrong value.
    """
    try:
        content = tomllib.loads(read_text(path))
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SpecError(f"{path}: is not valid TOML: {error}") from error
    try:
        values = _checked(content)
    except SpecError as error:
        raise SpecError(f"{path}: {error.message}", hint=error.hint) from error
    if "workloads" in values:
        values["workloads"] = [_relative_to(path.parent, name) for name in values["workloads"]]
    if "beside" in values:
        values["beside"] = _relative_to(path.parent, values["beside"])
    return SpecValues(**values)


def spec_values(content: Mapping[str, Any]) -> SpecValues:
    """Values given by a program, under the keys of a description and with the values that TOML would give.

    Raises:
        SpecError: for an unknown key or a wrong value.
    """
    return SpecValues(**_checked(content))


def _checked(content: Mapping[str, Any]) -> dict[str, Any]:
    try:
        parsed = _SpecFile.model_validate(content)
    except ValidationError as error:
        raise SpecError(first_mistake(error), hint="docs/reference/experiments.md lists the keys") from error
    values = {name: getattr(parsed, name) for name in parsed.model_fields_set}
    for option in OPTIONS:
        if option.singular in values:
            if option.name in values:
                raise SpecError(f"has both {option.singular} and {option.name}")
            values[option.name] = [values.pop(option.singular)]
    return values


def _relative_to(folder: Path, name: str) -> str:
    if is_replay(name):
        path = name.removeprefix(PREFIX)
        return name if Path(path).is_absolute() else f"{PREFIX}{folder / path}"
    is_file = name.endswith((".fio", COMMAND_SUFFIX))
    return str(folder / name) if is_file and not Path(name).is_absolute() else name


def run_limits(values: SpecValues) -> dict[str, Any]:
    """The fields of a specification that limit its length.

    Raises:
        SpecError: if both blocks and a budget are given, or the budget cannot be read.
    """
    return limits(values.get("blocks"), values.get("budget"))


def _named_workloads(values: SpecValues) -> list[Workload]:
    """The job files and commands that were named, or those that are taken by default."""
    commands = values.get("commands") or []
    names = values.get("workloads") or ([] if commands else DEFAULT_WORKLOADS)
    loaded = _TOP_LEVEL["workloads"].form.read(names) + _TOP_LEVEL["commands"].form.read(commands)
    return each_named_once(loaded)


def build_specs(values: SpecValues) -> list[ExperimentSpec]:
    """Settles defaults and loads workloads: one experiment for each target.

    Raises:
        SpecError: if values contradict each other.
        BlklabError: for an unknown workload, scheduler grammar, target grammar and the like.
    """
    if not values.get("targets"):
        raise SpecError("no target named", hint="name a directory, a block device or sim:DEVICE")
    settled: dict[str, Any] = {"workloads": _named_workloads(values), "schedulers": []}
    length = run_limits(values)
    if values.get("order") == "by-scheduler" and values.get("blocks") is None:
        raise SpecError("the order by-scheduler needs a fixed number of blocks", hint="give blocks")
    settled |= {"budget_blocks": DEFAULT_BUDGET_BLOCKS} if length == NO_LIMITS else length
    settled["stopping"] = "settled" if values.get("blocks") is None else "fixed"
    settled |= values.fields()
    settled["workloads"] = with_command_options(settled["workloads"], settled)
    settled["guest"] = guest_options(values.get("guest") or {})
    try:
        return [ExperimentSpec(target=text, **settled) for text in dict.fromkeys(values.get("targets"))]
    except ValidationError as error:
        raise SpecError(first_mistake(error)) from error
