"""A study that was carried out: what all its reports are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from blklab.experiment import ExperimentRecord
from blklab.figures import count_of, rounded
from blklab.studies.protocol import Asked, NamedExperiment, Place
from blklab.studies.published import Published
from blklab.studies.result import Figure, Quantity, StudyResult
from blklab.studies.statements import quantity_text

PLACE_TITLES: dict[Place, str] = {
    "sim": "the simulator",
    "uml": "a kernel in virtual time",
    "host": "this machine",
}
Row = tuple[str, str, str, str]
"""Of a table of figures: what it is, published, ours, ours over published."""
OUTCOME_SIGNS = {"holds": "✓", "fails": "✗", "undecided": "?"}


@dataclass(frozen=True)
class StudyFinding:
    """A study, its experiments, and what it made of them."""

    name: str
    asked: Asked
    published: Published
    experiments: Sequence[NamedExperiment]
    records: Mapping[str, ExperimentRecord]
    """By the experiments' names."""
    result: StudyResult

    @property
    def title(self) -> str:
        """The study's title."""
        return self.published.claims.title

    @property
    def tables(self) -> list[str]:
        """Headings of the tables of figures, in order."""
        return list(dict.fromkeys(figure.table for figure in self.result.figures))

    def rows(self, table: str) -> list[Row]:
        """The table of that heading."""
        return [_row(figure) for figure in self.result.figures if figure.table == table]

    def tally(self) -> str:
        """``5 of 6 statements hold; 1 fails``."""
        counts = Counter(statement.outcome for statement in self.result.statements)
        whole = f"{counts['holds']} of {count_of(len(self.result.statements), 'statement')} hold"
        rest = [
            text
            for number, text in (
                (counts["fails"], f"{counts['fails']} fail{'s' if counts['fails'] == 1 else ''}"),
                (counts["undecided"], f"{counts['undecided']} undecided"),
            )
            if number
        ]
        return "; ".join([whole, *rest])


def _row(figure: Figure) -> Row:
    return (
        f"{figure.name}, {figure.unit}" if figure.unit else figure.name,
        _cell(figure.published),
        _cell(figure.ours) if figure.ours else f"not asked: {figure.not_asked}",
        "-" if figure.ratio is None else rounded(figure.ratio),
    )


def _cell(quantity: Quantity | None) -> str:
    return "-" if quantity is None else quantity_text(quantity)
