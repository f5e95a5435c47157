"""The interface of a reader of another tool's output, and the types that it returns.

A reader is a module of this package with ``NAME``, ``SUMMARY``, ``recognises(source)`` and
``read(source, options)``; it may have ``why_empty(source)``, the error for a file of its tool without
results. It reports each value with its line, each location where a value is missing, and the lines that it
did not understand. It never guesses what was compared: it passes on the levels of factors as printed, and
`blklab.labs.reanalysis.design` settles their roles with the user.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from blklab.analysis.metrics import Better
from blklab.labs.reanalysis.readers.numbers import Decimal, NumberError, parse_number

Role = Literal["level", "condition", "setting", "block", "description"]
"""The natural role of a factor in a tool's output.

``level``: may be the compared factor (scheduler, machine, file). ``condition``: values under different
conditions are not comparable (record size, direction). ``setting``: a condition unless other conditions
determine it (the depth of a job that is named). ``block``: values of one block belong together (a
point in time). ``description``: adds detail to another factor (the process ID of a priority).
"""


_NEVER_NEGATIVE = frozenset({"IO/s", "MiB/s", "MB/s", "s", "ms", "us", "ns"})


@dataclass(frozen=True)
class Location:
    """A file and, if known, a line in it."""

    file: str
    line: int | None = None

    def __str__(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Measurement:
    """One value."""

    metric: str
    value: float
    unit: str
    """One of `blklab.labs.reanalysis.readers.units`, or the file's own text."""
    better: Better | None
    factors: Mapping[str, str]
    location: Location
    position: int | None = None
    """Place among the runs of all files as they were made; None if the files' times do not tell it."""


@dataclass(frozen=True)
class Problem:
    """A location whose value is missing or unreadable; the result is incomplete."""

    location: Location
    message: str


@dataclass(frozen=True)
class Source:
    """A file's name and text."""

    name: str
    text: str

    @property
    def lines(self) -> list[str]:
        """Lines without line ends; ``lines[0]`` is line 1."""
        return self.text.split("\n")

    @property
    def unended_line(self) -> int | None:
        """Number of the last line if no line feed ends it: the file may be cut off in its middle."""
        return None if not self.text or self.text.endswith("\n") else self.text.count("\n") + 1

    def at(self, line: int | None) -> Location:
        """The location of a line in this file."""
        return Location(self.name, line)


@dataclass(frozen=True)
class ReaderOptions:
    """The user's description of a table whose meaning no tool defines."""

    value_columns: tuple[str, ...] = ()
    unit: str | None = None
    better: Better | None = None
    decimal: Decimal | None = None
    delimiter: str | None = None


@dataclass
class Reading:
    """The content of a file as its reader understood it."""

    measurements: list[Measurement] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    skipped_lines: list[int] = field(default_factory=list)
    """Lines that are not in the tool's format, such as a shell prompt or a remark."""
    roles: dict[str, Role] = field(default_factory=dict)
    chronological: bool = False
    """Whether the order in the file is the order in which the runs were made."""
    times_s: list[float] = field(default_factory=list)
    """When runs of the file began or ended, in seconds of a clock that files share; empty if unknown."""

    def add(
        self,
        metric: str,
        value: float,
        unit: str,
        better: Better | None,
        factors: Mapping[str, str],
        location: Location,
    ) -> None:
        """Adds a value; records a problem if it is a rate or a time below 0."""
        if value < 0 and unit in _NEVER_NEGATIVE:
            self.problem(location, f"{metric}: {value:g} {unit} is below 0")
            return
        self.measurements.append(Measurement(metric, value, unit, better, dict(factors), location))

    def add_printed(
        self,
        metric: str,
        text: str,
        unit: str,
        better: Better | None,
        factors: Mapping[str, str],
        location: Location,
        *,
        factor: float = 1.0,
        decimal: Decimal | None = None,
    ) -> None:
        """Adds a printed value times `factor`; records a problem if it is not a number."""
        try:
            value = parse_number(text, decimal)
        except NumberError as error:
            self.problem(location, f"{metric}: {error}")
            return
        self.add(metric, value * factor, unit, better, factors, location)

    def problem(self, location: Location, message: str) -> None:
        """Records a location whose value is missing."""
        self.problems.append(Problem(location, message))


class Reader(Protocol):
    """One format."""

    NAME: str
    SUMMARY: str

    def recognises(self, source: Source) -> bool:
        """Whether the file looks like this tool's output."""

    def read(self, source: Source, options: ReaderOptions) -> Reading:
        """Reads a file that was recognised, or that the user declared to be in this format.

        Never raises for any text; reports problems instead.
        """
