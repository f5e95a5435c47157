"""What a person asks for: one experiment, from a TOML file, from flags, or both.

A TOML file has these keys, all optional but the target's::

    target = "/var/lib/postgresql"          # or targets = ["…", "…"]
    schedulers = ["none", "bfq:slice_idle=0"]
    workloads = ["random-read-4k-qd32", "./mine.fio"]
    budget = "5m"                            # or "30blocks"; or blocks = 10, a fixed number
    order = "randomised"                     # or "by-scheduler", which needs blocks
    seed = 1
    runtime = "3s"                           # overrides the runtime of time-based workloads
    confidence = 0.95
    margin = 0.02                            # differences below 2 % do not matter
    allow_writes = false                     # raw devices only
    goal = "latency"                         # or weights: goal = "iops=0.6,latency_p99=0.4", or [goal]
    sweeps = ["bfq:slice_idle=0,2,20"]       # every combination becomes a scheduler
    precondition = false                     # flash: overwrite scratch space at random first

    [queue]
    nr_requests = 64

    [cgroups.batch]                          # a job joins it with cgroup=batch
    "io.weight" = "50"

Targets that run in a guest kernel (``uml:``) know two more::

    kernels = ["stock", "patched"]           # every scheduler on each of these kernels

    [guest]
    generator = "fio"                        # default: blkguest
    time = "host"                            # default: virtual
    filesystem = "ext4"                      # files of the jobs lie on one; default: on the bare device
    memory = "1g"                            # default: 512m
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from blklab.errors import SpecError
from blklab.quantities.units import parse_duration_ns
from blklab.spec.goals import Goal, goal_from_weights, parse_goal
from blklab.spec.guest import GuestOptions, guest_options
from blklab.spec.schedulers import SchedulerChoice, check_kernel_name, parse_scheduler_choices
from blklab.spec.sweeps import Sweep, parse_sweeps
from blklab.spec.targets import parse_target
from blklab.spec.workloads import Workload, load_workload

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DEFAULT_BUDGET_BLOCKS = 18
"""Where a person sets no budget: a fifth more than the fifteen runs of a careful fixed design."""
DEFAULT_CONFIDENCE = 0.95
DEFAULT_MARGIN = 0.02
DEFAULT_SEED = 1
DEFAULT_WORKLOADS = ("random-read-4k-qd32", "reader-beside-writers")
MAX_BLOCKS = 100_000


Order = Literal["randomised", "by-scheduler"]
ORDERS: tuple[Order, ...] = get_args(Order)


class ExperimentSpec(BaseModel):
    """A complete experiment on one target. Holds job texts, so it repeats from the store alone."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    target: str
    schedulers: list[SchedulerChoice]
    """Empty: every scheduler that the target offers."""
    workloads: list[Workload]
    stopping: Literal["fixed", "settled"] = "fixed"
    """Whether blocks are added until each question is settled, which the analysis must allow for."""
    blocks: int | None = Field(default=None, ge=1, le=MAX_BLOCKS)
    """Number of blocks; nothing if the samples or the budget decide."""
    budget_ns: int | None = Field(default=None, gt=0)
    """Time at the most."""
    budget_blocks: int | None = Field(default=None, ge=1, le=MAX_BLOCKS)
    """Blocks at the most, where the samples decide how many there are."""
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
    goal: Goal | None = None
    """What the answer is for; nothing: each workload's own metric, and best in all of them."""
    sweeps: list[Sweep] = []
    """Their cells are among the schedulers once these are settled."""
    precondition: bool = False
    """Whether scratch space is written over at random first, as flash that has been in use for long."""
    kernels: list[str] = []
    """Guest kernels: every scheduler that names none is tried on each of them."""
    guest: GuestOptions = GuestOptions()
    """Of targets that run in a guest kernel."""

    order: Order = "randomised"
    """``by-scheduler``: all runs of one scheduler after another, as published experiments often did it. Drift
    of the machine then passes for a difference between schedulers."""
    rate_window_ns: int | None = Field(default=None, ge=1_000_000)
    """Length of the windows of `JobSample.rates` where the backend leaves the choice (the simulator, which
    records none otherwise)."""

    @model_validator(mode="after")
    def _order_needs_blocks(self) -> ExperimentSpec:
        if self.order == "by-scheduler" and self.blocks is None:
            raise ValueError("the order by-scheduler needs a fixed number of blocks")
        return self

    @property
    def stops_when_settled(self) -> bool:
        """Whether the samples decide how many blocks there are."""
        return self.stopping == "settled"

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
    order: Order | None = None
    seed: int | None = Field(default=None, ge=0, lt=1 << 53)
    runtime: str | None = None
    confidence: float | None = Field(default=None, gt=0.5, lt=1)
    margin: float | None = Field(default=None, ge=0, lt=1)
    allow_writes: bool | None = None
    queue: dict[str, str] | None = None
    cgroups: dict[str, dict[str, str]] | None = None
    goal: str | dict[str, float | int] | None = None
    sweeps: list[str] | None = None
    precondition: bool | None = None
    kernels: list[str] | None = None
    guest: dict[str, str] | None = None

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
    order: Order | None = None
    seed: int | None = None
    runtime: str | None = None
    confidence: float | None = None
    margin: float | None = None
    allow_writes: bool | None = None
    queue: dict[str, str] | None = None
    cgroups: dict[str, dict[str, str]] | None = None
    goal: Goal | None = None
    sweeps: list[str] | None = None
    precondition: bool | None = None
    kernels: list[str] | None = None
    guest: dict[str, str] | None = None

    def overlaid_by(self, other: SpecValues) -> SpecValues:
        """These values, replaced by those that `other` gives; blocks and budget replace each other."""
        given = other.model_dump(exclude_none=True)
        own = self.model_dump(exclude_none=True)
        if given.keys() & {"blocks", "budget"}:
            own.pop("blocks", None)
            own.pop("budget", None)
        if "guest" in given:
            given["guest"] = own.get("guest", {}) | given["guest"]
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
            f"{path}: {_first_mistake(error)}", hint="docs/reference/experiments.md lists the keys"
        ) from error
    if parsed.target is not None and parsed.targets is not None:
        raise SpecError(f"{path}: has both target and targets")
    values = parsed.model_dump(exclude={"target"})
    if parsed.goal is not None:
        try:
            values["goal"] = (
                parse_goal(parsed.goal) if isinstance(parsed.goal, str) else goal_from_weights(parsed.goal)
            )
        except SpecError as error:
            raise SpecError(f"{path}: {error.message}", hint=error.hint) from error
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


NO_LIMITS: dict[str, Any] = {"blocks": None, "budget_ns": None, "budget_blocks": None}


def run_limits(values: SpecValues) -> dict[str, Any]:
    """How long an experiment goes on: the fields of a specification that say so.

    Raises:
        SpecError: if both blocks and a budget are given, or the budget cannot be read.
    """
    if values.blocks is not None and values.budget is not None:
        raise SpecError(
            "blocks and budget cannot both be given",
            hint="blocks fixes their number; a budget is a limit for blocks added until all is settled",
        )
    if values.budget is None:
        return NO_LIMITS | {"blocks": values.blocks}
    return NO_LIMITS | parse_budget(values.budget)


def parse_budget(text: str) -> dict[str, int]:
    """Reads a budget: a time such as ``5m``, or a number of blocks such as ``30blocks``.

    Raises:
        SpecError: if it is neither.
    """
    counted = re.fullmatch(r"\s*(\d+)\s*blocks?\s*", text)
    if counted is None:
        return {"budget_ns": parse_duration_ns(text)}
    blocks = int(counted[1])
    if not 1 <= blocks <= MAX_BLOCKS:
        raise SpecError(f"budget: {blocks} blocks, where 1 to {MAX_BLOCKS} are possible")
    return {"budget_blocks": blocks}


def build_specs(values: SpecValues) -> list[ExperimentSpec]:
    """Settles defaults and loads workloads: one experiment for each target.

    Raises:
        SpecError: if values contradict each other.
        BlklabError: for an unknown workload, scheduler grammar, target grammar and the like.
    """
    if not values.targets:
        raise SpecError("no target named", hint="name a directory, a block device or sim:DEVICE")
    workloads = [load_workload(name) for name in values.workloads or DEFAULT_WORKLOADS]
    names = [workload.name for workload in workloads]
    for name in names:
        if names.count(name) > 1:
            raise SpecError(f"the workload {name!r} is listed twice", hint="rename one of the files")
    limits = run_limits(values)
    if values.order == "by-scheduler" and values.blocks is None:
        raise SpecError("the order by-scheduler needs a fixed number of blocks", hint="give blocks")
    if limits == NO_LIMITS:
        limits = {"budget_blocks": DEFAULT_BUDGET_BLOCKS}
    settled: dict[str, Any] = {
        **limits,
        "stopping": "settled" if values.blocks is None else "fixed",
        "schedulers": parse_scheduler_choices(values.schedulers) if values.schedulers else [],
        "sweeps": parse_sweeps(values.sweeps or []),
        "workloads": workloads,
        "runtime_ns": parse_duration_ns(values.runtime) if values.runtime is not None else None,
        "kernels": _kernel_names(values.kernels or []),
        "guest": guest_options(values.guest or {}),
    }
    rest = values.model_dump(exclude_none=True, exclude={"targets", *settled, "budget", "runtime"})
    specs = []
    for text in dict.fromkeys(values.targets):
        parse_target(text)
        try:
            specs.append(ExperimentSpec(target=text, **settled, **rest))
        except ValidationError as error:
            raise SpecError(_first_mistake(error)) from error
    return specs


def _kernel_names(texts: list[str]) -> list[str]:
    """Names of guest kernels, each once; a text may hold several, separated by commas."""
    names = [name.strip() for text in texts for name in text.split(",")]
    for name in names:
        check_kernel_name(name, ",".join(texts))
        if names.count(name) > 1:
            raise SpecError(f"the kernel {name!r} is listed twice")
    return names
