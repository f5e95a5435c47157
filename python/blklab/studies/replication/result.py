"""What a study finds: figures beside the published ones, statements, pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from blklab.studies.replication.pictures import Picture

Outcome = Literal["holds", "fails", "undecided"]

Origin = Literal["published", "ours"]
"""Whether a statement is a conclusion that was printed, or a check of our own."""


Beside = Literal["published", "intended"]
"""What a figure of ours is held against: what was printed, or what somebody set out to get."""


@dataclass(frozen=True)
class Quantity:
    """A figure, with the bounds of its 95 % interval where it has one."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Figure:
    """A published figure, or an intended one, and ours."""

    name: str
    """Unique within its table."""
    table: str
    """Heading under which it stands."""
    unit: str
    """Empty for a ratio."""
    published: Quantity | None
    """Nothing where the document has no such figure and ours is there for comparison."""
    ours: Quantity | None
    not_asked: str = ""
    """Why a model cannot be asked for it; ours is missing then."""
    beside: Beside = "published"
    """What ``published`` is; the same in all of a table."""

    @property
    def ratio(self) -> float | None:
        """Ours over published."""
        if self.published is None or self.ours is None or not self.published.value:
            return None
        return self.ours.value / self.published.value


@dataclass(frozen=True)
class Statement:
    """A sentence that results bear out or do not."""

    name: str
    """Unique within the study, such as ``level-0-faster``; ``expected.toml`` refers to it."""
    says: str
    origin: Origin
    outcome: Outcome
    found: str
    """What was found, in numbers."""
    why: str = ""
    """What it comes from, or why ours differs."""


@dataclass
class StudyResult:
    """What a study, or a part of it, made of its experiments."""

    figures: list[Figure] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    """Of the set-up: what could not be done as its authors did it, and what was done instead."""

    @classmethod
    def of(cls, parts: Sequence[StudyResult], remarks: list[str]) -> StudyResult:
        """What the parts of a study found, in their order, and remarks on the whole."""
        return cls(
            [figure for part in parts for figure in part.figures],
            [statement for part in parts for statement in part.statements],
            [picture for part in parts for picture in part.pictures],
            remarks,
        )

    def statement(self, name: str) -> Statement:
        """The statement of that name; it must be there."""
        return next(one for one in self.statements if one.name == name)

    def figure(self, table: str, name: str) -> Figure:
        """The figure of that name; it must be there."""
        return next(one for one in self.figures if (one.table, one.name) == (table, name))
