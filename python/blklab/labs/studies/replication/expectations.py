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
from blklab.labs.studies.replication.result import StatementOutcome
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
