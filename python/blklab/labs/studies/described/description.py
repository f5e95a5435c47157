"""The models of ``study.toml``: a study's experiments, figures, statements and pictures as data.

::

    [[experiments]]
    name = "repeated"
    title = "Both schedulers in randomised blocks"
    device = "ssd-sata"
    schedulers = ["none", "bfq"]
    blocks = { full = 10, quick = 4 }
    workloads = [{ file = "reads.fio", values = { runtime = "3s" } }]

    [published.reads]
    file = "reads.csv"
    column = "MBps"

    [series.reads]
    experiment = "repeated"
    metric = "throughput"

    [[statements]]
    name = "bfq-slower"
    says = "none reads faster than bfq."
    origin = "published"
    kind = "higher"
    ours = "reads"
    scheduler = "none"
    over = "bfq"
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, FiniteFloat, PositiveFloat, PositiveInt, model_validator

from blklab.errors import did_you_mean
from blklab.labs.studies.replication.options import Scaled, StudyBackend, StudyOptions, TomlTable
from blklab.labs.studies.replication.result import Origin, Reference

HIGHEST, LOWEST = "the highest", "the lowest"
HIGHEST_OTHER = "the highest other"
HIGHEST_PUBLISHED, LOWEST_PUBLISHED = "the highest published", "the lowest published"
PICKED = (HIGHEST, LOWEST, HIGHEST_OTHER, HIGHEST_PUBLISHED, LOWEST_PUBLISHED)
"""Words in place of a scheduler, which the values decide."""

Name = Annotated[str, Field(pattern=r"^[\w][\w., +-]*$", max_length=80)]
Text = Annotated[str, Field(min_length=1, max_length=2000)]

Statistic = Literal["mean", "ratio", "ratio of means", "deviation", "replayed ratio"]
"""How runs become one value.

* ``mean``: their geometric mean.
* ``ratio``: over another scheduler, ours within blocks, with 95 % intervals.
* ``ratio of means``: of arithmetic means, as documents print them, without intervals.
* ``deviation``: the standard deviation in percent of the mean.
* ``replayed ratio``: the published runs, and the same runs dealt out to randomised blocks in their order.
"""
StatementKind = Literal[
    "higher", "equal", "within", "ordered", "more scattered", "less scattered", "changes", "includes 1"
]
_NEEDS: Mapping[StatementKind, tuple[str, ...]] = {
    "higher": ("ours", "scheduler", "over"),
    "equal": ("ours", "scheduler", "over"),
    "within": ("ours", "scheduler", "at_least", "at_most"),
    "ordered": ("ours", "schedulers"),
    "more scattered": ("ours", "scheduler", "schedulers"),
    "less scattered": ("ours", "scheduler", "schedulers"),
    "changes": ("table",),
    "includes 1": ("table",),
}


def _require_published(words: Iterable[str | None], published: str | None, place: str) -> None:
    for word in words:
        if word in (HIGHEST_PUBLISHED, LOWEST_PUBLISHED) and published is None:
            raise ValueError(f"{place}: {word!r} needs published")


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


class RunFigure(TomlTable):
    """One number for each run of an experiment."""

    workload: str | None = None
    """None: the only one of the experiment."""
    job: str | None = None
    """Only this section of the job file."""
    metric: str | None = None
    """None: the one that the workload decides by. ``ios`` counts I/Os."""
    divide_by: PositiveFloat = 1.0


class MeasuredSeries(RunFigure):
    """One number for each of our runs."""

    experiment: str


class StudyWorkload(TomlTable):
    """A job file with values for its placeholders."""

    file: str
    study: str | None = None
    """A shipped study whose job file it is."""
    name: Name | None = None
    """None: the file's."""
    values: dict[str, Scaled[str]] = Field(default_factory=dict)


class DescribedExperiment(TomlTable):
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
    on: list[StudyBackend] = Field(default_factory=list)
    """Backends; empty: all of the study."""
    dispensable: bool = False


class ValueRows(TomlTable):
    """Rows of a table of values: one for each scheduler."""

    table: Text
    name: Text = "{scheduler}"
    unit: str = ""
    statistic: Statistic = "mean"
    ours: str
    published: str | None = None
    schedulers: list[str] = Field(default_factory=list)
    """Empty: all, except `over`."""
    over: str | None = None
    beside: Reference = "published"

    @model_validator(mode="after")
    def _has_what_its_statistic_needs(self) -> ValueRows:
        if "ratio" in self.statistic and self.over is None:
            raise ValueError(f"values {self.table!r}: {self.statistic!r} needs over")
        if self.statistic == "replayed ratio" and self.published is None:
            raise ValueError(f"values {self.table!r}: {self.statistic!r} needs published")
        _require_published([*self.schedulers, self.over], self.published, f"values {self.table!r}")
        return self


class DescribedStatement(TomlTable):
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
    schedulers: list[str] = Field(default_factory=list)
    """For ``ordered``: in descending order. For ``more`` and ``less scattered``: those compared with."""
    than: PositiveFloat = 1.0
    margin: PositiveFloat = 0.02
    at_least: FiniteFloat | None = None
    at_most: FiniteFloat | None = None
    unit: str = ""
    table: str | None = None
    """For statements on all rows of a table."""

    @model_validator(mode="after")
    def _has_what_its_kind_needs(self) -> DescribedStatement:
        missing = [key for key in _NEEDS[self.kind] if getattr(self, key) in (None, [])]
        if missing:
            raise ValueError(f"statement {self.name!r}: {self.kind!r} needs {' and '.join(missing)}")
        _require_published([self.scheduler, self.over], self.published, f"statement {self.name!r}")
        return self


class PictureRows(TomlTable):
    """Values of a table as rows of a picture."""

    table: str
    label: Text = "{name}, {origin}"


class DescribedPicture(TomlTable):
    """A picture: values with their intervals, or all runs of a session in their order."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$", max_length=60)]
    title: Text
    note: Text
    kind: Literal["intervals", "session"] = "intervals"
    axis: str = "times"
    rows: list[PictureRows] = Field(default_factory=list)
    marks: dict[str, FiniteFloat] = Field(default_factory=dict)
    published: str | None = None
    ours: str | None = None

    @model_validator(mode="after")
    def _has_what_its_kind_needs(self) -> DescribedPicture:
        if self.kind == "intervals" and not self.rows:
            raise ValueError(f"picture {self.name!r}: 'intervals' needs rows")
        if self.kind == "session" and (self.published is None or self.ours is None):
            raise ValueError(f"picture {self.name!r}: 'session' needs published and ours")
        return self


class Remark(TomlTable):
    """A sentence on the set-up."""

    says: Text
    on: list[StudyBackend] = Field(default_factory=list)
    """Backends; empty: all."""

    @model_validator(mode="before")
    @classmethod
    def _from_a_sentence(cls, value: Any) -> Any:
        return {"says": value} if isinstance(value, str) else value


class StudyDescription(TomlTable):
    """``study.toml``."""

    backends: list[StudyBackend] = Field(default=["sim"], min_length=1)
    host_scratch: str | None = None
    """Size of the loop device on hosts, in the folder that the user names."""
    devices: dict[str, FittedDevice] = Field(default_factory=dict)
    published: dict[str, PublishedRuns] = Field(default_factory=dict)
    series: dict[str, MeasuredSeries] = Field(default_factory=dict)
    experiments: list[DescribedExperiment] = Field(min_length=1)
    values: list[ValueRows] = Field(default_factory=list)
    statements: list[DescribedStatement] = Field(default_factory=list)
    pictures: list[DescribedPicture] = Field(default_factory=list)
    remarks: list[Remark] = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def _inherited(cls, content: Any) -> Any:
        """Experiments with what they have in common with an earlier one (``like``)."""
        if not isinstance(content, dict) or not isinstance(content.get("experiments"), list):
            return content
        by_name: dict[Any, dict[str, Any]] = {}
        whole = []
        for experiment in content["experiments"]:
            if not isinstance(experiment, dict):
                return content
            own = dict(experiment)
            like = own.pop("like", None)
            if like is not None and str(like) not in by_name:
                raise ValueError(f"experiment {own.get('name')!r}: there is no earlier experiment {like!r}")
            whole.append({**by_name.get(str(like), {}), **own})
            by_name[str(own.get("name"))] = whole[-1]
        return {**content, "experiments": whole}

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> StudyDescription:
        for what, names in (
            ("experiment", [one.name for one in self.experiments]),
            ("statement", [one.name for one in self.statements]),
            ("picture", [one.name for one in self.pictures]),
        ):
            for name in names:
                if names.count(name) > 1:
                    raise ValueError(f"two {what}s are called {name!r}")
        for place, kind, named, known in self._references():
            if named is not None and named not in known:
                close = did_you_mean(named, list(known)) or f"there are: {', '.join(known) or 'none'}"
                raise ValueError(f"{place}: there is no {kind} {named!r}; {close}")
        for place, text, words in self._texts():
            for found in re.findall(r"\{(\w+)\}", text):
                if found not in words:
                    raise ValueError(f"{place}: {{{found}}} stands for nothing; {_braced(words)} do")
        if "host" in self.backends and self.host_scratch is None:
            raise ValueError("host_scratch: is missing; runs on hosts need the size of their loop device")
        if set(self.backends) != {"host"}:
            for experiment in self.experiments:
                if not experiment.device:
                    raise ValueError(f"experiment {experiment.name!r}: device: is missing")
        return self

    def _references(self) -> Iterator[tuple[str, str, str | None, Iterable[str]]]:
        """Each name of another part: the place, what it names, and the names that there are."""
        experiments = [one.name for one in self.experiments]
        tables = list(dict.fromkeys(one.table for one in self.values))
        for name, device in self.devices.items():
            yield f"devices.{name}", "published runs", device.published, self.published
        for name, series in self.series.items():
            yield f"series.{name}", "experiment", series.experiment, experiments
        for kind, parts in (
            ("values", [(one.table, one) for one in self.values]),
            ("statement", [(one.name, one) for one in self.statements]),
            ("picture", [(one.name, one) for one in self.pictures]),
        ):
            for name, part in parts:
                place = f"{kind} {name!r}"
                yield place, "series", part.ours, self.series
                yield place, "published runs", part.published, self.published
        for statement in self.statements:
            yield f"statement {statement.name!r}", "table", statement.table, tables
        for picture in self.pictures:
            for rows in picture.rows:
                yield f"picture {picture.name!r}", "table", rows.table, tables

    def _texts(self) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        """Each text with placeholders: its place, itself, and the names that it may have."""
        both = ("scheduler", "over")
        for rows in self.values:
            yield f"values {rows.table!r}", rows.name, both
        for one in self.statements:
            yield f"statement {one.name!r}", one.says + one.why, both
        for picture in self.pictures:
            for row in picture.rows:
                yield f"picture {picture.name!r}", row.label, ("name", "origin")

    def experiments_on(self, options: StudyOptions) -> list[DescribedExperiment]:
        """The experiments that a backend has."""
        return [one for one in self.experiments if not one.on or options.backend in one.on]


def filled(text: str, **names: str) -> str:
    """A text with ``{name}`` replaced by the name's value."""
    return re.sub(r"\{(\w+)\}", lambda match: names.get(match[1], match[0]), text)


def _braced(names: Iterable[str]) -> str:
    return " and ".join(f"{{{name}}}" for name in names)
