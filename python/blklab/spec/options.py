"""Options of an experiment: each is declared once, in the annotation of the field that holds its value.

::

    precondition: Annotated[bool, Option(SWITCH, "Overwrite scratch space at random first.")] = False

Name, type, bounds and default are the field's own; the `Option` adds everything else. `options_of` collects
them into a table. Everything that knows options reads it: descriptions (`blklab.spec.request`), the flags of
commands (`blklab.cli.options`), the docs' table, man pages and completion (`blklab.cli.reference`), and the
command that repeats a run (`blklab.report.summary.reproduce`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types
from pydantic import BaseModel
from pydantic.fields import FieldInfo


class Topic(Enum):
    """Headings under which help, man pages and docs list options, in this order."""

    COMPARISON = "Comparison"
    DESIGN = "Design"
    RUNS = "Conditions of all runs"
    COMMANDS = "Commands as workloads"
    GUESTS = "Guest kernels (uml: targets)"
    VERDICT = "Verdict"


class Use(Enum):
    """Use of a flag on a command line."""

    SWITCH = "takes no value"
    ONCE = "takes one value"
    REPEATED = "may be given several times"


@dataclass(frozen=True)
class Form:
    """The written form of values of one kind, in a description and behind a flag."""

    use: Use
    words: Callable[[Any], list[str]]
    """Arguments that give the field's value, one for each use of the flag; a switch needs none."""
    read: Callable[[Any], Any] = lambda written: written
    """From a value as written to the field's value; for an option of several fields, to a dict of theirs.

    Raises a `BlklabError` for what cannot be read.
    """
    gather: Callable[[Any, str], Any] = lambda given, _flag: given
    """From what follows a flag (a tuple where it is repeated) to a value as written.

    Its second argument is the flag, for messages.
    """
    in_file: Any = None
    """Annotation of the value in a description; None: the field's own type and bounds."""


@dataclass(frozen=True)
class Option:
    """One option: its spelling and its meaning.

    `options_of` fills in the attributes after `instead_of` from the field.
    """

    form: Form
    help: str
    """One sentence for help, man page and docs."""
    topic: Topic = Topic.RUNS
    name: str = ""
    """The key in a description; by default the field's name."""
    singular: str = ""
    """A second key, for a single value in place of a list."""
    flag: str = ""
    """By default the name with dashes."""
    short: str = ""
    positional: bool = False
    """True for an argument of the command, which has no flag."""
    metavar: str = ""
    default_text: str = ""
    """The default in words, where it is not the field's."""
    see: str = ""
    """A page of the docs (and an anchor on it) that says more."""
    names: str = ""
    """Values that completion offers: a key in `blklab.cli.reference.names`."""
    commands: tuple[str, ...] = ("compare",)
    """Subcommands that take it."""
    always_repeated: bool = False
    """The command that repeats a run spells it out even if it is the default."""
    more_fields: tuple[str, ...] = ()
    """Fields that the option sets besides the one that declares it."""
    instead_of: tuple[str, ...] = ()
    """Options that it replaces where a flag meets a description."""

    field: str = ""
    table: str = ""
    """The TOML table that holds it, which is also the field that holds the model of its field."""
    type: Any = None
    """Without None."""
    bounds: tuple[annotated_types.BaseMetadata, ...] = ()
    default: Any = None
    """None also if there is no default."""

    @property
    def key(self) -> str:
        """The name with its table, as TOML writes it."""
        return f"{self.table}.{self.name}" if self.table else self.name

    @property
    def choices(self) -> tuple[str, ...]:
        """The words that it takes; empty if it takes others."""
        return get_args(self.type) if get_origin(self.type) is Literal else ()

    @property
    def flags(self) -> tuple[str, ...]:
        """Its spellings on a command line, the short one first."""
        return (self.short, self.flag) if self.short else (self.flag,)

    @property
    def shown_metavar(self) -> str:
        """The placeholder of its value in help; empty for a switch."""
        if self.form.use is Use.SWITCH:
            return ""
        if self.metavar or self.choices:
            return self.metavar or "|".join(self.choices)
        return {int: "NUMBER", float: "FRACTION"}.get(self.type, "TEXT")

    @property
    def shown_default(self) -> str:
        """The default in words; empty where there is none to name."""
        if self.default_text or self.default in (None, False, {}, []):
            return self.default_text
        return str(self.default)

    def bound(self, name: str) -> Any:
        """The value of a bound: of ``ge``, ``gt``, ``le`` or ``lt``; None if there is none of that kind."""
        return next((getattr(one, name) for one in self.bounds if hasattr(one, name)), None)

    def value_in(self, spec: BaseModel) -> Any:
        """The value that an experiment has; of several fields, a dict of those that are set.

        None if no field is set.
        """
        holder = getattr(spec, self.table) if self.table else spec
        if not self.more_fields:
            return getattr(holder, self.field)
        values = {name: getattr(holder, name) for name in (self.field, *self.more_fields)}
        return {name: value for name, value in values.items() if value is not None} or None

    def arguments(self, spec: BaseModel) -> list[str]:
        """The part of a command line that gives an experiment's value; empty where the default does."""
        value = self.value_in(spec)
        if value in (None, [], {}) or (value == self.default and not self.always_repeated):
            return []
        if self.form.use is Use.SWITCH:
            return [self.flag]
        written = self.form.words(value)
        return written if self.positional else [word for one in written for word in (self.flag, one)]

    def annotation_in_file(self) -> Any:
        """The type of the value in a description, with its bounds."""
        if self.form.in_file is not None:
            return self.form.in_file
        annotation = self.type
        for bound in self.bounds:
            annotation = Annotated[annotation, bound]
        return annotation


def options_of(model: type[BaseModel]) -> tuple[Option, ...]:
    """The options that a model's fields declare, those of fields that are models included, topic by topic."""
    topics = list(Topic)
    return tuple(sorted(_declared_in(model, ""), key=lambda option: topics.index(option.topic)))


def _declared_in(model: type[BaseModel], table: str) -> Iterable[Option]:
    for field, info in model.model_fields.items():
        if isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel):
            yield from _declared_in(info.annotation, field)
        for declared in info.metadata:
            if isinstance(declared, Option):
                yield _completed(declared, field, info, table)


def _completed(declared: Option, field: str, info: FieldInfo, table: str) -> Option:
    name = declared.name or field
    return replace(
        declared,
        name=name,
        flag="" if declared.positional else declared.flag or f"--{name.replace('_', '-')}",
        field=field,
        table=table,
        type=_without_none(info.annotation),
        bounds=tuple(one for one in info.metadata if isinstance(one, annotated_types.BaseMetadata)),
        default=None if info.is_required() else info.get_default(call_default_factory=True),
    )


def _without_none(annotation: Any) -> Any:
    if get_origin(annotation) in (Union, UnionType):
        left = [one for one in get_args(annotation) if one is not NoneType]
        return left[0] if len(left) == 1 else Union[tuple(left)]  # noqa: UP007 - built at run time
    return annotation
