"""A study that was carried out: what all its reports are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from blklab.experiment import ExperimentRecord
from blklab.figures import count_of
from blklab.studies.protocol import Asked, NamedExperiment, Place
from blklab.studies.published import Published
from blklab.studies.result import StudyResult

PLACE_TITLES: dict[Place, str] = {
    "sim": "the simulator",
    "uml": "a kernel in virtual time",
    "host": "this machine",
}
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
