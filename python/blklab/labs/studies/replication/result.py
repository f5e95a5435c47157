"""The result of a replication: values beside the published ones, statements, pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from blklab.labs.studies.replication.pictures import Picture

StatementOutcome = Literal["holds", "fails", "undecided"]

Origin = Literal["published", "ours"]
"""Origin of a statement: a printed conclusion, or a check of our own."""


Reference = Literal["published", "intended"]
"""The reference for one of our values: the printed value, or the value that a setting is meant to give."""


@dataclass(frozen=True)
class IntervalEstimate:
    """A value and, where it has one, its 95 % interval."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class ComparedValue:
    """A published or intended value, and ours."""

    name: str
    """Unique within its table."""
    table: str
    """Heading of the table that it belongs to."""
    unit: str
    """Empty for a ratio."""
    published: IntervalEstimate | None
    """None if the document has no such value and ours is shown for comparison."""
    ours: IntervalEstimate | None
    not_asked: str = ""
    """Why we cannot measure it; `ours` is None then."""
    beside: Reference = "published"
    """The kind of reference in `published`; the same throughout a table."""

    @property
    def ratio(self) -> float | None:
        """Ours over published."""
        if self.published is None or self.ours is None or not self.published.value:
            return None
        return self.ours.value / self.published.value


@dataclass(frozen=True)
class Statement:
    """A sentence that the results confirm, refute or leave open."""

    name: str
    """Unique within the study, such as ``level-0-faster``; ``expected.toml`` refers to it."""
    says: str
    origin: Origin
    outcome: StatementOutcome
    found: str
    """The measured numbers."""
    why: str = ""
    """The cause, or the reason why our result differs."""


@dataclass
class StudyResult:
    """The result of a study or of a part of it."""

    values: list[ComparedValue] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    """Where the set-up departs from the authors', and what replaces it."""

    @classmethod
    def of(cls, parts: Sequence[StudyResult], remarks: list[str]) -> StudyResult:
        """Joins the parts of a study in order, with remarks on the whole."""
        return cls(
            [value for part in parts for value in part.values],
            [statement for part in parts for statement in part.statements],
            [picture for part in parts for picture in part.pictures],
            remarks,
        )

    def statement(self, name: str) -> Statement:
        """The statement with this name, which must exist."""
        return next(one for one in self.statements if one.name == name)

    def value(self, table: str, name: str) -> ComparedValue:
        """The value with this name in this table, which must exist."""
        return next(one for one in self.values if (one.table, one.name) == (table, name))
