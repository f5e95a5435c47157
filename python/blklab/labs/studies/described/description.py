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
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import Field, model_validator

from blklab.errors import did_you_mean
from blklab.labs.studies.described.lists import written_out
from blklab.labs.studies.described.parts import (
    DescribedExperiment,
    DescribedPicture,
    DescribedStatement,
    FittedDevice,
    MeasuredSeries,
    PublishedRuns,
    Remark,
    ValueRows,
)
from blklab.labs.studies.replication.options import StudyBackend, StudyOptions, TomlTable


class StudyDescription(TomlTable):
    """``study.toml``."""

    lists: dict[str, list[Any]] = Field(default_factory=dict)
    """For parts with ``each`` (`blklab.labs.studies.described.lists`)."""
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
        """Every part that lists make, and experiments with what they share with an earlier one (``like``)."""
        if not isinstance(content, dict):
            return content
        content = written_out(content)
        if not isinstance(content.get("experiments"), list):
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
        for backend in self.backends:
            for what, names in (
                ("experiment", [one.name for one in self.experiments if one.is_on(backend)]),
                ("statement", [one.name for one in self.statements if one.is_on(backend)]),
                ("picture", [one.name for one in self.pictures if one.is_on(backend)]),
            ):
                for name, count in Counter(names).items():
                    if count > 1:
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
        modelled = [backend for backend in self.backends if backend != "host"]
        for experiment in self.experiments:
            if not experiment.device and any(experiment.is_on(backend) for backend in modelled):
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
                if not isinstance(part, DescribedPicture):
                    yield place, "series", part.against, self.series
                yield place, "published runs", part.published, self.published
        for statement in self.statements:
            yield f"statement {statement.name!r}", "table", statement.table, tables
        for picture in self.pictures:
            for table in [*(rows.table for rows in picture.rows), *(line.table for line in picture.lines)]:
                yield f"picture {picture.name!r}", "table", table, tables

    def _texts(self) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        """Each text with placeholders: its place, itself, and the names that it may have."""
        both = ("scheduler", "over")
        for rows in self.values:
            words = (*both, "pair") if rows.statistic == "pairs" else both
            yield f"values {rows.table!r}", rows.name, words
        for one in self.statements:
            yield f"statement {one.name!r}", one.says + one.why, _words_of(one)
        for picture in self.pictures:
            for row in picture.rows:
                yield f"picture {picture.name!r}", row.label, ("name", "scheduler", "origin")

    def experiments_on(self, options: StudyOptions) -> list[DescribedExperiment]:
        """The experiments that a backend has."""
        found = [one for one in self.experiments if one.is_on(options.backend)]
        return [one for one in found if one.quick or not options.quick]


def _words_of(one: DescribedStatement) -> tuple[str, ...]:
    if one.table is not None:
        return ("mean",)
    return ("interaction", "count") if one.kind == "no interaction" else ("scheduler", "over", "count")


def _braced(names: Iterable[str]) -> str:
    return " and ".join(f"{{{name}}}" for name in names)
