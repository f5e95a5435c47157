"""Compares the result of a study with what its folder expects."""

from __future__ import annotations

from blklab.labs.studies.replication.expectations import ExpectedOutcomes
from blklab.labs.studies.replication.result import StudyResult


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
