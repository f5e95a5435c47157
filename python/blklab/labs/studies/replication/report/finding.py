"""A study with its records and results, the input of all its reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from blklab.labs.studies.replication.options import StudyBackend, StudyOptions
from blklab.labs.studies.replication.protocol import NamedExperiment
from blklab.labs.studies.replication.result import (
    ComparedValue,
    IntervalEstimate,
    Origin,
    Statement,
    StudyResult,
)
from blklab.labs.studies.replication.statements import estimate_text
from blklab.labs.studies.replication.study_folder import StudyFolder
from blklab.quantities.formatting import count_of, rounded
from blklab.records.experiment import ExperimentRecord

BACKEND_TITLES: dict[StudyBackend, str] = {
    "sim": "the simulator",
    "uml": "a kernel in virtual time",
    "host": "this machine",
}
ValueRow = tuple[str, str, str, str]
"""A row of a table of values: name, published, ours, ours over published."""
_ORIGINS: dict[Origin, str] = {"published": "published conclusion", "ours": "statement"}
_TALLIED: dict[Origin, str] = {"published": "", "ours": " of ours"}
STATEMENT_SIGNS = {"holds": "✓", "fails": "✗", "undecided": "?"}


@dataclass(frozen=True)
class StudyFinding:
    """A study, its experiments, their records and the result."""

    name: str
    options: StudyOptions
    folder: StudyFolder
    experiments: Sequence[NamedExperiment]
    records: Mapping[str, ExperimentRecord]
    """By name of the experiment."""
    result: StudyResult

    @property
    def title(self) -> str:
        """The study's title."""
        return self.folder.claims.title

    @property
    def place(self) -> str:
        """Where it ran, in words."""
        title = BACKEND_TITLES[self.options.backend]
        return title if self.options.kernel is None else f"{title} ({self.options.kernel.name})"

    @property
    def tables(self) -> list[str]:
        """Headings of the tables of values, in order."""
        return list(dict.fromkeys(value.table for value in self.result.values))

    def headings(self, table: str) -> tuple[str, str, str]:
        """Headings of the columns after the first one."""
        beside = next(value.beside for value in self.result.values if value.table == table)
        return beside, "ours", f"ours / {beside}"

    def rows(self, table: str) -> list[ValueRow]:
        """Rows of the table with this heading."""
        return [_row(value) for value in self.result.values if value.table == table]

    def counts(self) -> str:
        """``18 experiments, 683 runs``."""
        runs = sum(len(record.samples) for record in self.records.values())
        return f"{count_of(len(self.experiments), 'experiment')}, {count_of(runs, 'run')}"

    def tally(self) -> str:
        """``2 of 3 published conclusions hold, 1 fails; 6 of 6 statements of ours hold``."""
        return "; ".join(self.tally_of(origin) for origin in _TALLIED if self._of(origin))

    def tally_of(self, origin: Origin) -> str:
        """The same of one origin."""
        statements = self._of(origin)
        counts = Counter(one.outcome for one in statements)
        whole = f"{counts['holds']} of {count_of(len(statements), _ORIGINS[origin])}{_TALLIED[origin]} "
        whole += "holds" if counts["holds"] == 1 else "hold"
        fails = f"{counts['fails']} fail{'s' if counts['fails'] == 1 else ''}" if counts["fails"] else ""
        undecided = f"{counts['undecided']} undecided" if counts["undecided"] else ""
        return ", ".join(part for part in (whole, fails, undecided) if part)

    def _of(self, origin: Origin) -> list[Statement]:
        return [one for one in self.result.statements if one.origin == origin]


def _row(value: ComparedValue) -> ValueRow:
    return (
        f"{value.name}, {value.unit}" if value.unit else value.name,
        _cell(value.published),
        _cell(value.ours) if value.ours else f"not asked: {value.not_asked}",
        "-" if value.ratio is None else rounded(value.ratio),
    )


def _cell(quantity: IntervalEstimate | None) -> str:
    return "-" if quantity is None else estimate_text(quantity)
