"""Changes while the load runs: ``AT WHAT``, such as ``10s reader: ionice=rt/4``.

========================= =====================================================
``reader: ionice=rt/4``   the I/O priority of a job's processes (``ionice``)
``batch: io.weight=50``   an attribute of a control group; ``/`` is the root
``nr_requests=32``        an attribute of the queue
``slice_idle=0``          a tunable of the scheduler in force
``scheduler=kyber``       another scheduler, with tunables if wanted
========================= =====================================================

Times count from the start of the load. All schedulers of a comparison get the same changes.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, model_validator

from blklab.errors import SpecError, UsageError
from blklab.quantities.units import MOST_NS, exact_duration, parse_duration_ns
from blklab.spec.group_settings import ATTRIBUTE_PATTERN, group_settings
from blklab.spec.schedulers import OF_QUEUE, check_scheduler_name, check_settings, parse_scheduler_choice
from blklab.spec.setting_values import check_group_value, check_queue_values

HINT = (
    "write it like '10s reader: ionice=rt/4', '10s batch: io.weight=50', '10s nr_requests=32', "
    "'10s slice_idle=0' or '10s scheduler=kyber'"
)

IoClassName = Literal["rt", "be", "idle"]
DEFAULT_LEVEL = 4
"""The level of ``ionice`` without ``-n`` (IOPRIO_NORM, include/uapi/linux/ioprio.h)."""

_PRIORITY = re.compile(r"(?P<job>.+):\s*ionice\s*=\s*(?P<value>[^:=]*)")
_GROUP = re.compile(rf"(?P<group>[^\s:=]+):\s*(?P<name>{ATTRIBUTE_PATTERN})\s*=(?P<value>.+)")
_SETTING = re.compile(r"(?P<name>[a-z][a-z0-9_]*)\s*=(?P<value>.+)")
_IONICE = re.compile(r"(rt|be|idle)(?:/([0-7]))?")


class _Change(BaseModel, ABC):
    model_config = ConfigDict(frozen=True, extra="forbid")

    at_ns: int = Field(gt=0, le=MOST_NS)
    """From the start of the load."""

    @property
    @abstractmethod
    def what(self) -> str:
        """The change without its time, in the grammar."""

    @property
    @abstractmethod
    def subject(self) -> str:
        """The setting that it changes."""

    @property
    def canonical(self) -> str:
        """The change in its grammar; parsing it again gives an equal one."""
        return f"{exact_duration(self.at_ns)} {self.what}"

    def request(self) -> dict[str, Any]:
        """As the core and the program in guests take it."""
        return {"at_ns": self.at_ns, "change": self.model_dump(exclude={"at_ns"})}


class SchedulerChange(_Change):
    """Another scheduler. The queue is emptied, and the scheduler begins anew even if it is in force."""

    kind: Literal["scheduler"] = "scheduler"
    scheduler: str
    tunables: dict[str, str] = {}

    @model_validator(mode="after")
    def _follows_the_grammar(self) -> SchedulerChange:
        check_scheduler_name(self.scheduler)
        check_settings(self.tunables)
        return self

    @property
    def what(self) -> str:
        """``scheduler=bfq:slice_idle=0``."""
        return ":".join(
            [f"scheduler={self.scheduler}", *(f"{key}={value}" for key, value in self.tunables.items())]
        )

    @property
    def subject(self) -> str:
        """``scheduler``."""
        return "scheduler"


class _Assignment(_Change):
    name: str
    value: str

    @model_validator(mode="after")
    def _follows_the_grammar(self) -> _Assignment:
        check_queue_values({self.name: self.value})
        return self

    @property
    def what(self) -> str:
        """``nr_requests=32``."""
        return f"{self.name}={self.value}"

    @property
    def subject(self) -> str:
        """The name."""
        return self.name


class TunableChange(_Assignment):
    """A tunable of the scheduler in force (``queue/iosched/NAME``)."""

    kind: Literal["tunable"] = "tunable"


class QueueChange(_Assignment):
    """An attribute of the queue (``queue/NAME``), in sysfs units."""

    kind: Literal["queue"] = "queue"


class PriorityChange(_Change):
    """The I/O priority of a job's processes, for what they issue from then on (``ioprio_set``)."""

    kind: Literal["priority"] = "priority"
    job: str
    io_class: IoClassName
    level: int = Field(default=DEFAULT_LEVEL, ge=0, le=7)
    """Of no meaning in the idle class."""

    @property
    def what(self) -> str:
        """``reader: ionice=rt/4``."""
        level = "" if self.io_class == "idle" else f"/{self.level}"
        return f"{self.subject}={self.io_class}{level}"

    @property
    def subject(self) -> str:
        """``reader: ionice``."""
        return f"{self.job}: ionice"

    def request(self) -> dict[str, Any]:
        """As the core takes it."""
        change = {"kind": self.kind, "job": self.job, "class": self.io_class, "level": self.level}
        return {"at_ns": self.at_ns, "change": change}


class GroupChange(_Change):
    """A weight, a limit or a target of a control group, or a controller's parameters in the root."""

    kind: Literal["group"] = "group"
    group: str
    attribute: str
    value: str

    @model_validator(mode="after")
    def _follows_the_grammar(self) -> GroupChange:
        check_group_value(self.attribute, self.value)
        return self

    @property
    def what(self) -> str:
        """``batch: io.weight=50``."""
        return f"{self.subject}={self.value}"

    @property
    def subject(self) -> str:
        """``batch: io.weight``."""
        return f"{self.group}: {self.attribute}"


Change = Annotated[
    SchedulerChange | TunableChange | QueueChange | PriorityChange | GroupChange, Field(discriminator="kind")
]


def parse_change(text: str) -> Change:
    """Reads one change.

    Raises:
        UsageError: if the text does not follow the grammar, or Linux changes no such thing for a running job.
    """
    at, _, what = text.strip().partition(" ")
    try:
        at_ns = parse_duration_ns(at)
    except UsageError as error:
        raise UsageError(
            f"the change {text!r} does not begin with its time: {error.message}", hint=HINT
        ) from error
    return _change_of(at_ns, what.strip(), text)


def _change_of(at_ns: int, what: str, text: str) -> Change:
    if (match := _PRIORITY.fullmatch(what)) is not None:
        return _priority(at_ns, match["job"].strip(), match["value"], text)
    if (match := _GROUP.fullmatch(what)) is not None:
        return GroupChange(
            at_ns=at_ns, group=match["group"], attribute=match["name"], value=_value(match["value"], text)
        )
    match = _SETTING.fullmatch(what)
    if match is None:
        raise UsageError(f"the change {text!r} names nothing that can be changed", hint=HINT)
    if match["name"] == "scheduler":
        return _scheduler(at_ns, match["value"], text)
    if match["name"] == "read_ahead_kb":
        raise UsageError(
            f"the change {text!r} has no effect on a running job: a file has its readahead window from when "
            "it was opened",
            hint="give read_ahead_kb to the run from its start",
        )
    kind = QueueChange if match["name"] in OF_QUEUE else TunableChange
    return kind(at_ns=at_ns, name=match["name"], value=_value(match["value"], text))


def _value(written: str, text: str) -> str:
    value = written.strip()
    if not value or "\n" in value:
        raise UsageError(f"the change {text!r} has no value", hint=HINT)
    return value


def _priority(at_ns: int, job: str, value: str, text: str) -> PriorityChange:
    parsed = _IONICE.fullmatch(value.strip())
    if parsed is None or (parsed[1] == "idle" and parsed[2] is not None):
        raise UsageError(
            f"the change {text!r}: {value.strip()!r} is no I/O priority",
            hint="write rt/0 to rt/7, be/0 to be/7 or idle; 0 is served first",
        )
    level = DEFAULT_LEVEL if parsed[2] is None else int(parsed[2])
    return PriorityChange.model_validate({"at_ns": at_ns, "job": job, "io_class": parsed[1], "level": level})


def _scheduler(at_ns: int, value: str, text: str) -> SchedulerChange:
    choice = parse_scheduler_choice(value)
    if choice.label != choice.without_label or choice.kernel is not None:
        raise UsageError(
            f"the change {text!r}: a scheduler that comes while the load runs has no label and no kernel of "
            "its own",
            hint="write it like '10s scheduler=bfq:slice_idle=0'",
        )
    if choice.queue:
        name = next(iter(choice.queue))
        raise UsageError(
            f"the change {text!r}: {name} belongs to the queue, not to the scheduler",
            hint=f"give it as a change of its own: '{exact_duration(at_ns)} {name}={choice.queue[name]}'",
        )
    for name in choice.of_writeback:
        raise UsageError(
            f"the change {text!r}: vm.{name} belongs to the machine, not to the scheduler",
            hint="compare it between runs: -s "
            f"{choice.name},{choice.name}:vm.{name}={choice.of_writeback[name]}",
        )
    for place in group_settings(choice.tunables):
        written = choice.tunables[place.name]
        of_key = written if place.key is None else f"{place.key}={written}"
        raise UsageError(
            f"the change {text!r}: {place.name} belongs to a control group, not to the scheduler",
            hint="give it as a change of its own: "
            f"'{exact_duration(at_ns)} {place.group}: {place.attribute}={of_key}'",
        )
    return SchedulerChange(at_ns=at_ns, scheduler=choice.name, tunables=choice.tunables)


def parse_changes(written: Iterable[str | ChangeTable]) -> list[Change]:
    """Reads changes, in order of their times; those of one moment keep their order.

    Raises:
        UsageError: for one that cannot be read, or if two set the same thing at the same time.
    """
    changes: list[Change] = []
    for one in written:
        changes += [parse_change(one)] if isinstance(one, str) else one.changes()
    changes.sort(key=lambda change: change.at_ns)
    seen: set[tuple[int, str]] = set()
    for change in changes:
        if (change.at_ns, change.subject) in seen:
            raise UsageError(f"{change.subject} changes twice at {exact_duration(change.at_ns)}")
        seen.add((change.at_ns, change.subject))
    return changes


def _numbers_as_text(table: Any) -> Any:
    """A person may write a bare number."""
    if isinstance(table, Mapping):
        return {key: _numbers_as_text(value) for key, value in table.items()}
    return str(table) if isinstance(table, int) and not isinstance(table, bool) else table


_Settings = Annotated[dict[str, str], BeforeValidator(_numbers_as_text)]
_GroupSettings = Annotated[dict[str, dict[str, str]], BeforeValidator(_numbers_as_text)]


class ChangeTable(BaseModel):
    """Changes of one moment in a description: a ``[[change]]``."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    at: str
    scheduler: str | None = None
    queue: _Settings = {}
    tunables: _Settings = {}
    ionice: _Settings = {}
    """By job."""
    cgroups: _GroupSettings = {}

    def changes(self) -> list[Change]:
        """The changes, in the order in which they are made.

        Raises:
            UsageError: for one that cannot be read.
            SpecError: if there is none.
        """
        whats = [] if self.scheduler is None else [f"scheduler={self.scheduler}"]
        whats += [f"{name}={value}" for name, value in {**self.queue, **self.tunables}.items()]
        whats += [f"{job}: ionice={value}" for job, value in self.ionice.items()]
        whats += [
            f"{group}: {name}={value}"
            for group, settings in self.cgroups.items()
            for name, value in settings.items()
        ]
        if not whats:
            raise SpecError(f"the change at {self.at} changes nothing", hint=HINT)
        return [parse_change(f"{self.at} {what}") for what in whats]


def _form(written: Any) -> str:
    return "text" if isinstance(written, str) else "table"


WrittenChange = Annotated[
    Annotated[str, Tag("text")] | Annotated[ChangeTable, Tag("table")], Discriminator(_form)
]
"""A change in a description."""


def phases_of(changes: Sequence[Change], *, begins_ns: int, ends_ns: int) -> list[tuple[int, int]]:
    """The parts of a run between its changes, as pairs of beginning and end.

    Args:
        changes: In order of their times.
        begins_ns: From when on the run is measured.
        ends_ns: The end of the load.
    """
    if begins_ns >= ends_ns:
        return []
    moments = sorted({change.at_ns for change in changes if begins_ns < change.at_ns < ends_ns})
    edges = [begins_ns, *moments, ends_ns]
    return list(pairwise(edges))
