"""What a reader of another tool's output is, and what it gives.

A reader is a module of this package with ``NAME``, ``SUMMARY``, ``recognises(source)`` and
``read(source, options)``. It reports each value with the line that it stands on, each location where a value
should be and is not, and how many lines said nothing to it. It never guesses what was compared: levels of
factors are passed on as printed, and `blklab.reanalysis.design` settles their roles with the person.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from blklab.reanalysis.readers.numbers import Decimal, NumberError, parse_number

Better = Literal["higher", "lower"]
Role = Literal["level", "condition", "block", "description"]
"""What a factor of a tool's output is by its nature.

``level``: may be what was compared (scheduler, machine, file). ``condition``: values of different values
are not comparable (record size, direction). ``block``: values of one value belong together (a moment).
``description``: says more of the same (process number beside its priority).
"""


@dataclass(frozen=True)
class Location:
    """Where something stands."""

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
    """One of `blklab.reanalysis.readers.units`, or whatever the file says."""
    better: Better | None
    factors: Mapping[str, str]
    location: Location


@dataclass(frozen=True)
class Problem:
    """A location where a value should be and could not be read: the result is not whole."""

    location: Location
    message: str


@dataclass(frozen=True)
class Source:
    """A file's name and text."""

    name: str
    text: str

    @property
    def lines(self) -> list[str]:
        """Lines without their ends; ``lines[0]`` is line 1."""
        return self.text.split("\n")

    def at(self, line: int | None) -> Location:
        """A location in this file."""
        return Location(self.name, line)


@dataclass(frozen=True)
class ReaderOptions:
    """What a person says of a table whose meaning no tool fixes."""

    value_columns: tuple[str, ...] = ()
    unit: str | None = None
    better: Better | None = None
    decimal: Decimal | None = None
    delimiter: str | None = None


@dataclass
class Reading:
    """What a reader understood of a file."""

    measurements: list[Measurement] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    skipped_lines: list[int] = field(default_factory=list)
    """Lines that are not of the tool's format: a shell's prompt, a remark."""
    roles: dict[str, Role] = field(default_factory=dict)
    chronological: bool = False
    """Whether the order in the file is the order in which the runs were made."""

    def add(
        self,
        metric: str,
        value: float,
        unit: str,
        better: Better | None,
        factors: Mapping[str, str],
        location: Location,
    ) -> None:
        """Adds a value."""
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
        """Adds a value as it was printed, times `factor`; notes a problem where it is no number."""
        try:
            value = parse_number(text, decimal)
        except NumberError as error:
            self.problem(location, f"{metric}: {error}")
            return
        self.add(metric, value * factor, unit, better, factors, location)

    def problem(self, location: Location, message: str) -> None:
        """Notes a location where a value is missing."""
        self.problems.append(Problem(location, message))


class Reader(Protocol):
    """One format."""

    NAME: str
    SUMMARY: str

    def recognises(self, source: Source) -> bool:
        """Whether the file looks like this tool's output."""

    def read(self, source: Source, options: ReaderOptions) -> Reading:
        """Reads a file that was recognised, or that a person said is of this format.

        Whatever the text is: never an exception, but problems.
        """
