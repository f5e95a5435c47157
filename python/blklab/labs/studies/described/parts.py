"""The models of the parts of ``study.toml``: experiments, series, values, statements and pictures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, FiniteFloat, PositiveFloat, PositiveInt, model_validator

from blklab.labs.studies.replication.options import Scaled, StudyBackend, TomlTable
from blklab.labs.studies.replication.result import Origin, Reference
from blklab.spec.schedulers import parse_scheduler_choice
from blklab.spec.sweeps import TunableSweep, checked_sweep

HIGHEST, LOWEST = "the highest", "the lowest"
HIGHEST_OTHER = "the highest other"
HIGHEST_PUBLISHED, LOWEST_PUBLISHED = "the highest published", "the lowest published"
ALL_SCHEDULERS = "all schedulers"
PICKED = (HIGHEST, LOWEST, HIGHEST_OTHER, HIGHEST_PUBLISHED, LOWEST_PUBLISHED, ALL_SCHEDULERS)
"""Words in place of a scheduler: which the values decide, or the runs of all schedulers together."""

Name = Annotated[str, Field(pattern=r"^[\w][\w., +-]*$", max_length=80)]
Text = Annotated[str, Field(min_length=1, max_length=2000)]

Statistic = Literal[
    "mean",
    "arithmetic mean",
    "ratio",
    "pairs",
    "effect",
    "ratio of means",
    "deviation",
    "replayed ratio",
]
"""How runs become one value.

* ``mean``: their geometric mean.
* ``arithmetic mean``: as documents print it, without an interval.
* ``ratio``: over another scheduler, ours within blocks, with 95 % intervals.
* ``pairs``: the ratio in each block, a row each.
* ``effect``: of a tunable's value, averaged over the combinations of a sweep; the ratio where there is none.
* ``ratio of means``: of arithmetic means, as documents print them, without intervals.
* ``deviation``: the standard deviation in percent of the mean.
* ``replayed ratio``: the published runs, and the same runs dealt out to randomised blocks in their order.
"""
StatementKind = Literal[
    "higher",
    "equal",
    "within",
    "ordered",
    "more scattered",
    "less scattered",
    "no interaction",
    "changes",
    "includes 1",
    "published between",
]
_OF_PAIRS = ("ratio", "pairs", "effect", "ratio of means", "replayed ratio")
_NEEDS: Mapping[StatementKind, tuple[str, ...]] = {
    "higher": ("ours", "scheduler", "over"),
    "equal": ("ours", "scheduler", "over"),
    "within": ("ours", "scheduler", "at_least", "at_most"),
    "ordered": ("ours", "schedulers"),
    "more scattered": ("ours", "scheduler", "schedulers"),
    "less scattered": ("ours", "scheduler", "schedulers"),
    "no interaction": ("ours",),
}
"""Of statements on a series' runs."""
_NEEDS_OF_ROWS: Mapping[StatementKind, tuple[str, ...]] = {
    "higher": (),
    "within": ("at_least", "at_most"),
    "changes": (),
    "includes 1": (),
    "published between": ("between", "published", "scheduler"),
}
"""Of statements on the rows of a table."""


def _require_published(words: Iterable[str | None], published: str | None, place: str) -> None:
    for word in words:
        if word in (HIGHEST_PUBLISHED, LOWEST_PUBLISHED) and published is None:
            raise ValueError(f"{place}: {word!r} needs published")


class PartOnBackends(TomlTable):
    """A part that some backends have."""

    on: list[StudyBackend] = Field(default_factory=list)
    """Backends; empty: all."""

    def is_on(self, backend: StudyBackend) -> bool:
        """Whether the backend has it."""
        return not self.on or backend in self.on


class FittedDevice(TomlTable):
    """A device as fast as published runs, which stalls so often that it scatters as they do."""

    published: str
    schedulers: list[str]
    """The runs of these count."""
    unit_bytes: PositiveFloat
    """Bytes a second of a published value of 1."""
    command_bytes: PositiveInt
    window: str
    """How long a published run lasted."""
    stall: str
    parameters: str
    """Other parameters of the device model ``fixed``."""
    steady_on: list[StudyBackend] = Field(default_factory=list)
    """Backends whose runs are too short for stalls to average out."""


class PublishedRuns(TomlTable):
    """Published values by scheduler, from a table in ``published/``."""

    file: str
    column: str
    where: dict[str, str] = Field(default_factory=dict)
    """Values of other columns."""
    by: str = "scheduler"
    """The column that names schedulers."""
    rows: dict[str, dict[str, str]] = Field(default_factory=dict)
    """Instead of `by`: for each of our labels the values of columns."""


class MeasuredSeries(TomlTable):
    """One number for each of our runs."""

    experiment: str
    workload: str | None = None
    """None: the only one of the experiment."""
    job: str | None = None
    """Only this section of the job file."""
    metric: str | None = None
    """None: the one that the workload decides by. Counts: ``ios``; of the requests that reached the disk
    ``requests per second`` and ``bytes per request``."""
    divide_by: PositiveFloat = 1.0
    tool: str | None = None
    """Only runs whose load came from this program, not from a job in its place."""


class StudyWorkload(TomlTable):
    """A job file with values for its placeholders."""

    file: str
    study: str | None = None
    """A shipped study whose job file it is."""
    name: Name | None = None
    """None: the file's."""
    values: dict[str, Scaled[str]] = Field(default_factory=dict)


class SweptTunables(TomlTable):
    """Every combination of tunables' values with what is in force without them."""

    base: str
    """The scheduler that they change."""
    levels: dict[str, list[str]]

    def sweep(self) -> TunableSweep:
        """The sweep of an experiment.

        Raises:
            SpecError: if it has too many combinations.
        """
        return checked_sweep(TunableSweep(base=parse_scheduler_choice(self.base), levels=self.levels))


class DescribedExperiment(PartOnBackends):
    """One experiment."""

    name: Name
    title: Text
    device: str = ""
    """The device of models: a model with its parameters, or a fitted device. On hosts a loop device."""
    schedulers: Scaled[list[str]] = Scaled[list[str]](full=[])
    """Empty: all that the target offers."""
    blocks: Scaled[PositiveInt] = Scaled[PositiveInt](full=1)
    workloads: list[StudyWorkload] = Field(min_length=1)
    order: Literal["randomised", "by-scheduler"] = "randomised"
    queue: dict[str, str] = Field(default_factory=dict)
    cgroups: dict[str, dict[str, str]] = Field(default_factory=dict)
    sweep: SweptTunables | None = None
    """Its combinations are schedulers, too."""
    quick: bool = True
    """False: left out with ``--quick``."""
    dispensable: bool = False


class ValueRows(PartOnBackends):
    """Rows of a table of values: one for each scheduler."""

    table: Text
    name: Text = "{scheduler}"
    unit: str = ""
    statistic: Statistic = "mean"
    ours: str | None = None
    """None: we cannot measure it, and `not_asked` says why."""
    published: str | None = None
    schedulers: list[str] = Field(default_factory=list)
    """Empty: all, except `over`."""
    over: str | None = None
    against: str | None = None
    """The series of `over`; None: that of `ours`."""
    beside: Reference = "published"
    not_asked: str = ""
    """Why we do not measure it, although there are runs."""
    x: FiniteFloat | None = None
    """Its place on the horizontal axis of lines."""
    hidden: bool = False
    """Only for statements and pictures."""

    @model_validator(mode="after")
    def _has_what_its_statistic_needs(self) -> ValueRows:
        if self.statistic in _OF_PAIRS and self.over is None:
            raise ValueError(f"values {self.table!r}: {self.statistic!r} needs over")
        if self.ours is None and not (self.not_asked and self.published):
            raise ValueError(f"values {self.table!r}: needs ours, or published and not_asked")
        if self.statistic == "replayed ratio" and self.published is None:
            raise ValueError(f"values {self.table!r}: {self.statistic!r} needs published")
        _require_published([*self.schedulers, self.over], self.published, f"values {self.table!r}")
        return self


class DescribedStatement(PartOnBackends):
    """A sentence that the runs confirm, refute or leave open."""

    name: Name
    says: Text
    origin: Origin = "ours"
    kind: StatementKind
    why: str = ""
    ours: str | None = None
    published: str | None = None
    """For the words `the highest published`."""
    scheduler: str | None = None
    over: str | None = None
    against: str | None = None
    """The series of `over`; None: that of `ours`."""
    statistic: Literal["ratio", "effect"] = "ratio"
    """How `scheduler` is compared with `over`."""
    schedulers: list[str] = Field(default_factory=list)
    """For ``ordered``: in descending order. For ``more`` and ``less scattered``: those compared with."""
    than: PositiveFloat = 1.0
    margin: PositiveFloat = 0.02
    at_least: FiniteFloat | None = None
    at_most: FiniteFloat | None = None
    unit: str = ""
    table: str | None = None
    """For statements on all rows of a table."""
    between: tuple[str, str] | None = None
    """Names of two rows of the table, the lower one first."""

    @model_validator(mode="after")
    def _has_what_its_kind_needs(self) -> DescribedStatement:
        if self.table is None and self.kind in _NEEDS:
            needs = _NEEDS[self.kind]
        elif self.kind in _NEEDS_OF_ROWS:
            needs = ("table", *_NEEDS_OF_ROWS[self.kind])
        else:
            raise ValueError(f"statement {self.name!r}: {self.kind!r} is not about a table's rows")
        missing = [key for key in needs if getattr(self, key) in (None, [])]
        if missing:
            raise ValueError(f"statement {self.name!r}: {self.kind!r} needs {' and '.join(missing)}")
        _require_published([self.scheduler, self.over], self.published, f"statement {self.name!r}")
        return self


class PictureRows(PartOnBackends):
    """Values of a table as rows of a picture."""

    table: str
    label: Text = "{name}, {origin}"


class PictureLine(PartOnBackends):
    """Values of a table, those with `x`, as a line."""

    table: str
    label: Text
    origin: Origin = "ours"
    dashed: bool = False


class DescribedPicture(PartOnBackends):
    """A picture: values with their intervals, lines over an axis, or all runs of a session in their order."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$", max_length=60)]
    title: Text
    note: Text
    kind: Literal["intervals", "lines", "session"] = "intervals"
    axis: str = "times"
    x_axis: str = ""
    lines: list[PictureLine] = Field(default_factory=list)
    rows: list[PictureRows] = Field(default_factory=list)
    marks: dict[str, FiniteFloat] = Field(default_factory=dict)
    published: str | None = None
    ours: str | None = None

    @model_validator(mode="after")
    def _has_what_its_kind_needs(self) -> DescribedPicture:
        if self.kind == "intervals" and not self.rows:
            raise ValueError(f"picture {self.name!r}: 'intervals' needs rows")
        if self.kind == "lines" and not (self.lines and self.x_axis):
            raise ValueError(f"picture {self.name!r}: 'lines' needs lines and x_axis")
        if self.kind == "session" and (self.published is None or self.ours is None):
            raise ValueError(f"picture {self.name!r}: 'session' needs published and ours")
        return self


class Remark(PartOnBackends):
    """A sentence on the set-up."""

    says: Text

    @model_validator(mode="before")
    @classmethod
    def _from_a_sentence(cls, value: Any) -> Any:
        return {"says": value} if isinstance(value, str) else value


def filled(text: str, **names: str) -> str:
    """A text with ``{name}`` replaced by the name's value."""
    return re.sub(r"\{(\w+)\}", lambda match: names.get(match[1], match[0]), text)
