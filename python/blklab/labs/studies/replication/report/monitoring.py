"""A study for other programs' dashboards: its statements and values as OpenMetrics text and JUnit XML."""

from __future__ import annotations

from collections.abc import Sequence

from blklab.labs.studies.replication.report.document import EstimatePart, StudyDocument, StudyPart
from blklab.report.monitoring.families import Families
from blklab.report.monitoring.junit import TestCase, TestSuite

OUTCOMES = ("holds", "fails", "undecided")


def study_metrics(document: StudyDocument) -> str:
    """Statements and values of studies as OpenMetrics text."""
    families = Families()
    for study in document.studies:
        _add_study(families, study)
    return families.text()


def study_suites(document: StudyDocument) -> Sequence[TestSuite]:
    """A suite for each study, and a test case for each of its statements."""
    return [
        TestSuite(
            name=f"blklab study run {study.name}",
            cases=[
                _failed_runs(study),
                *(
                    TestCase(
                        name=one.name,
                        text=f"{one.says}\n{one.found}\n{one.why}".strip(),
                        failure=f"{one.says}: {one.found}" if one.outcome == "fails" else None,
                        skipped=one.found if one.outcome == "undecided" else None,
                    )
                    for one in study.statements
                ),
            ],
            properties={
                "backend": study.place,
                "quick": str(study.quick).lower(),
                "seed": str(study.seed),
                "blklab_version": document.blklab_version,
            },
        )
        for study in document.studies
    ]


def _failed_runs(study: StudyPart) -> TestCase:
    failed = [f"{one.name}: {one.failed_runs} of {one.runs} runs failed" for one in study.experiments]
    failed = [line for line, one in zip(failed, study.experiments, strict=True) if one.failed_runs]
    return TestCase(
        "all runs succeeded", "\n".join(failed) or "no run failed", error=failed[0] if failed else None
    )


def _add_study(families: Families, study: StudyPart) -> None:
    place = {"study": study.name, "backend": study.place}
    for one in study.experiments:
        families.add("study_failed_runs", one.failed_runs, "Runs that failed", **place, experiment=one.name)
    for statement in study.statements:
        families.add_states(
            "study_statement",
            "outcome",
            OUTCOMES,
            statement.outcome,
            "Statement of a study: 1 for its present outcome",
            **place,
            statement=statement.name,
            origin=statement.origin,
        )
    for value in study.figures:
        labels = {**place, "table": value.table, "quantity": value.name, "measured_in": value.unit}
        _add_estimate(families, "study_value", value.ours, "Value of a study as found here", labels)
        _add_estimate(families, "study_published", value.published, "Value of a study as published", labels)


def _add_estimate(
    families: Families, name: str, found: EstimatePart | None, meaning: str, labels: dict[str, str]
) -> None:
    if found is None:
        return
    families.add(name, found.value, meaning, **labels)
    families.add(f"{name}_ci_low", found.low, f"{meaning}: lower bound of the interval", **labels)
    families.add(f"{name}_ci_high", found.high, f"{meaning}: upper bound of the interval", **labels)
