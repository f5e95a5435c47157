"""What must come out of a study: ``expected.toml``, held against results by tests and by the pages.

::

    [sim.statements.level-0-faster]
    outcome = "holds"
    why = "cfq's slices are 180 ms and 40 ms long"

    [[sim.figures]]
    table = "Write speed of level 0 over level 7"
    name = "cfq"
    at_least = 2.2
    at_most = 4.6
    why = "…"
"""

from __future__ import annotations

from pydantic import Field

from blklab.studies.replication.protocol import Place
from blklab.studies.replication.result import Outcome, StudyResult
from blklab.studies.replication.study_folder import Published, Table

EXPECTED_FILE = "expected.toml"


class ExpectedStatement(Table):
    """How a statement must come out."""

    outcome: Outcome
    why: str


class ExpectedFigure(Table):
    """Between which bounds a figure of ours must lie."""

    table: str
    name: str
    at_least: float
    at_most: float
    why: str


class Expected(Table):
    """What must come out at one place."""

    statements: dict[str, ExpectedStatement] = Field(default_factory=dict)
    figures: list[ExpectedFigure] = Field(default_factory=list)


class _File(Table):
    sim: Expected = Expected()
    uml: Expected = Expected()
    host: Expected = Expected()


def expected_of(published: Published, place: Place) -> Expected:
    """What a study's file says of a place.

    Raises:
        SpecError: if the file cannot be read or has a mistake.
    """
    file = published.toml(EXPECTED_FILE, _File)
    return {"sim": file.sim, "uml": file.uml, "host": file.host}[place]


def unmet(expected: Expected, result: StudyResult) -> list[str]:
    """A sentence for each expectation that the result does not meet; statements left out count too."""
    statements = {one.name: one for one in result.statements}
    missing = [
        f"nothing is expected of the statement {name}"
        for name in statements.keys() - expected.statements.keys()
    ]
    sentences = []
    for name, wanted in expected.statements.items():
        found = statements.get(name)
        if found is None:
            sentences.append(f"there is no statement {name}")
        elif found.outcome != wanted.outcome:
            sentences.append(f"{name}: {found.outcome}, not {wanted.outcome}: {found.found}")
    figures = {(one.table, one.name): one for one in result.figures}
    for bound in expected.figures:
        figure = figures.get((bound.table, bound.name))
        if figure is None or figure.ours is None:
            sentences.append(f"there is no figure of ours {bound.table}: {bound.name}")
        elif not bound.at_least <= figure.ours.value <= bound.at_most:
            sentences.append(
                f"{bound.table}: {bound.name} is {figure.ours.value:.4g}, "
                f"not within {bound.at_least:g} to {bound.at_most:g}"
            )
    return [*sorted(missing), *sentences]
