"""What a person asks for: one experiment, from a TOML file, from flags, or both.

A TOML file has these keys, all optional but the target's::

    target = "/var/lib/postgresql"          # or targets = ["…", "…"]
    schedulers = ["none", "bfq:slice_idle=0"]
    workloads = ["random-read-4k-qd32", "./mine.fio"]
    blocks = 10                              # or budget = "5m"
    seed = 1
    runtime = "3s"                           # overrides the runtime of time-based workloads
    confidence = 0.95
    margin = 0.02                            # differences below 2 % do not matter
    allow_writes = false                     # raw devices only

    [queue]
    nr_requests = 64

    [cgroups.batch]                          # a job joins it with cgroup=batch
    "io.weight" = "50"
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from blklab.errors import SpecError
from blklab.scheduler_choice import SchedulerChoice, parse_scheduler_choices
from blklab.targets import parse_target
from blklab.units import parse_duration_ns
from blklab.workloads import Workload, load_workload

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DEFAULT_BLOCKS = 6
DEFAULT_CONFIDENCE = 0.95
DEFAULT_MARGIN = 0.02
DEFAULT_SEED = 1
DEFAULT_WORKLOADS = ("random-read-4k-qd32", "reader-beside-writers")
MAX_BLOCKS = 100_000


class ExperimentSpec(BaseModel):
    """A complete experiment on one target. Holds job texts, so it repeats from the store alone."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    target: str
    schedulers: list[SchedulerChoice]
    """Empty: every scheduler that the target offers."""
    workloads: list[Workload]
    blocks: int | None = Field(default=None, ge=1, le=MAX_BLOCKS)
    """Number of blocks; nothing if the budget decides."""
    budget_ns: int | None = Field(default=None, gt=0)
    seed: int = Field(default=DEFAULT_SEED, ge=0, lt=1 << 53)
    runtime_ns: int | None = Field(default=None, gt=0)
    """Runtime of time-based jobs in place of what the job file says."""
    queue: dict[str, str] = {}
    """Queue attributes (``nr_requests`` …) set for every run, in sysfs units."""
    cgroups: dict[str, dict[str, str]] = {}
    """Settings of control groups by name; ``/`` is the root group (``io.cost.qos``, ``io.cost.model``)."""
    confidence: float = Field(default=DEFAULT_CONFIDENCE, gt=0.5, lt=1)
    margin: float = Field(default=DEFAULT_MARGIN, ge=0, lt=1)
    allow_writes: bool = False

    def with_schedulers(self, choices: list[SchedulerChoice]) -> ExperimentSpec:
        """The same experiment with its schedulers settled."""
        return self.model_copy(update={"schedulers": choices})

    def workload(self, name: str) -> Workload:
        """The workload of that name; it must be there."""
        return next(workload for workload in self.workloads if workload.name == name)


class _SpecFile(BaseModel):
    """The TOML file as written."""

    model_config = ConfigDict(extra="forbid", strict=True)

    target: str | None = None
    targets: list[str] | None = None
    schedulers: list[str] | None = None
    workloads: list[str] | None = None
    blocks: int | None = Field(default=None, ge=1, le=MAX_BLOCKS)
    budget: str | None = None
    seed: int | None = Field(default=None, ge=0, lt=1 << 53)
    runtime: str | None = None
    confidence: float | None = Field(default=None, gt=0.5, lt=1)
    margin: float | None = Field(default=None, ge=0, lt=1)
    allow_writes: bool | None = None
    queue: dict[str, str] | None = None
    cgroups: dict[str, dict[str, str]] | None = None

    @field_validator("queue", mode="before")
    @classmethod
    def _numbers_as_text(cls, value: Any) -> Any:
        return _as_text(value)

    @field_validator("cgroups", mode="before")
    @classmethod
    def _nested_numbers_as_text(cls, value: Any) -> Any:
        return {name: _as_text(group) for name, group in value.items()} if isinstance(value, dict) else value


def _as_text(table: Any) -> Any:
    """Sysfs takes text; a person may write a bare number."""
    if not isinstance(table, dict):
        return table
    return {
        key: str(value) if isinstance(value, int) and not isinstance(value, bool) else value
        for key, value in table.items()
    }


class SpecValues(BaseModel):
    """Values from one origin (file or flags); those not given are left out."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    targets: list[str] | None = None
    schedulers: list[str] | None = None
    workloads: list[str] | None = None
    blocks: int | None = None
    budget: str | None = None
    seed: int | None = None
    runtime: str | None = None
    confidence: float | None = None
    margin: float | None = None
    allow_writes: bool | None = None
    queue: dict[str, str] | None = None
    cgroups: dict[str, dict[str, str]] | None = None

    def overlaid_by(self, other: SpecValues) -> SpecValues:
        """These values, replaced by those that `other` gives; blocks and budget replace each other."""
        given = other.model_dump(exclude_none=True)
        own = self.model_dump(exclude_none=True)
        if given.keys() & {"blocks", "budget"}:
            own.pop("blocks", None)
            own.pop("budget", None)
        return SpecValues.model_validate(own | given)


def read_spec_file(path: Path) -> SpecValues:
    """Reads a TOML description. Paths of job files in it are relative to the file.

    Raises:
        SpecError: if the file is missing, is not TOML, or has an unknown key or a wrong value.
    """
    try:
        with path.open("rb") as file:
            content = tomllib.load(file)
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SpecError(f"{path}: is not valid TOML: {error}") from error
    try:
        parsed = _SpecFile.model_validate(content)
    except ValidationError as error:
        raise SpecError(
            f"{path}: {_first_mistake(error)}", hint="docs/experiments.md lists the keys"
        ) from error
    if parsed.target is not None and parsed.targets is not None:
        raise SpecError(f"{path}: has both target and targets")
    values = parsed.model_dump(exclude={"target"})
    if parsed.target is not None:
        values["targets"] = [parsed.target]
    if parsed.workloads is not None:
        values["workloads"] = [_relative_to(path.parent, name) for name in parsed.workloads]
    return SpecValues.model_validate(values)


def _relative_to(folder: Path, name: str) -> str:
    return str(folder / name) if name.endswith(".fio") and not Path(name).is_absolute() else name


def _first_mistake(error: ValidationError) -> str:
    mistake = error.errors()[0]
    place = ".".join(str(part) for part in mistake["loc"])
    if mistake["type"] == "extra_forbidden":
        return f"unknown key {place!r}"
    return f"{place}: {mistake['msg']}"


NO_LIMITS: dict[str, int | None] = {"blocks": None, "budget_ns": None}


def run_limits(values: SpecValues) -> dict[str, int | None]:
    """How long an experiment goes on: ``blocks`` and ``budget_ns`` of a specification.

    Raises:
        SpecError: if both are given.
    """
    if values.blocks is not None and values.budget is not None:
        raise SpecError(
            "blocks and budget cannot both be given", hint="a budget decides the number of blocks"
        )
    budget_ns = None if values.budget is None else parse_duration_ns(values.budget)
    return {"blocks": values.blocks, "budget_ns": budget_ns}


def build_specs(values: SpecValues) -> list[ExperimentSpec]:
    """Settles defaults and loads workloads: one experiment for each target.

    Raises:
        SpecError: if values contradict each other.
        BlklabError: for an unknown workload, scheduler grammar, target grammar and the like.
    """
    if not values.targets:
        raise SpecError("no target named")
    if values.blocks is not None and values.budget is not None:
        raise SpecError(
            "blocks and budget cannot both be given", hint="a budget decides the number of blocks"
        )
    workloads = [load_workload(name) for name in values.workloads or DEFAULT_WORKLOADS]
    names = [workload.name for workload in workloads]
    for name in names:
        if names.count(name) > 1:
            raise SpecError(f"the workload {name!r} is listed twice", hint="rename one of the files")
    limits = run_limits(values)
    if limits == NO_LIMITS:
        limits = {"blocks": DEFAULT_BLOCKS}
    settled: dict[str, Any] = {
        **limits,
        "schedulers": parse_scheduler_choices(values.schedulers) if values.schedulers else [],
        "workloads": workloads,
        "runtime_ns": parse_duration_ns(values.runtime) if values.runtime is not None else None,
    }
    rest = values.model_dump(
        exclude_none=True, exclude={"targets", "schedulers", "workloads", "blocks", "budget", "runtime"}
    )
    specs = []
    for text in dict.fromkeys(values.targets):
        parse_target(text)
        try:
            specs.append(ExperimentSpec(target=text, **settled, **rest))
        except ValidationError as error:
            raise SpecError(_first_mistake(error)) from error
    return specs
