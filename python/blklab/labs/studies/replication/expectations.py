"""Expected outcomes of a study, from ``expected.toml``; the tests compare results with them.

::

    [sim.statements.level-0-faster]
    outcome = "holds"
    why = "cfq's slices are 180 ms and 40 ms long"

    [[sim.values]]
    table = "Write speed of level 0 over level 7"
    name = "cfq"
    at_least = 2.2
    at_most = 4.6
    why = "…"
"""

from __future__ import annotations

from pydantic import Field

from blklab.labs.studies.replication.options import StudyBackend, TomlTable
from blklab.labs.studies.replication.result import StatementOutcome, StudyResult
from blklab.labs.studies.replication.study_folder import StudyFolder

EXPECTED_FILE = "expected.toml"


class ExpectedStatement(TomlTable):
    """The outcome that a statement must have."""

    outcome: StatementOutcome
    why: str


class ExpectedValue(TomlTable):
    """The bounds within which one of our values must lie."""

    table: str
    name: str
    at_least: float
    at_most: float
    why: str


class ExpectedOutcomes(TomlTable):
    """The expected outcomes on one backend."""

    statements: dict[str, ExpectedStatement] = Field(default_factory=dict)
    values: list[ExpectedValue] = Field(default_factory=list)


class _File(TomlTable):
    sim: ExpectedOutcomes = ExpectedOutcomes()
    uml: ExpectedOutcomes = ExpectedOutcomes()
    host: ExpectedOutcomes = ExpectedOutcomes()


def expected_of(folder: StudyFolder, backend: StudyBackend) -> ExpectedOutcomes:
    """The expected outcomes of a study on one backend.

    Raises:
        SpecError: if the file cannot be read or has a mistake.
    """
    file = folder.toml(EXPECTED_FILE, _File)
    return {"sim": file.sim, "uml": file.uml, "host": file.host}[backend]


def unmet(expected: ExpectedOutcomes, result: StudyResult) -> list[str]:
    """One sentence for each expectation that the result misses, and for each statement without one."""
    statements = {one.name: one for one in result.statements}
    missing = [
        f"the statement {name} has no expected outcome"
        for name in statements.keys() - expected.statements.keys()
    ]
    sentences = []
    for name, wanted in expected.statements.items():
        found = statements.get(name)
        if found is None:
            sentences.append(f"there is no statement {name}")
        elif found.outcome != wanted.outcome:
            sentences.append(f"{name}: {found.outcome}, not {wanted.outcome}: {found.found}")
    values = {(one.table, one.name): one for one in result.values}
    for bound in expected.values:
        value = values.get((bound.table, bound.name))
        if value is None or value.ours is None:
            sentences.append(f"there is no value of ours {bound.table}: {bound.name}")
        elif not bound.at_least <= value.ours.value <= bound.at_most:
            sentences.append(
                f"{bound.table}: {bound.name} is {value.ours.value:.4g}, "
                f"not within {bound.at_least:g} to {bound.at_most:g}"
            )
    return [*sorted(missing), *sentences]
