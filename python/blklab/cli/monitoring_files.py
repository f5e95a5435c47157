"""Files for monitoring and CI that commands write beside their reports."""

from __future__ import annotations

from collections.abc import Sequence

from blklab.analysis.between_runs import RunsComparison
from blklab.cli.output import write_text
from blklab.report.documents.comparison import CompareDocument
from blklab.report.monitoring.junit import compare_suite, junit_xml
from blklab.report.monitoring.junit_changes import change_suite
from blklab.report.monitoring.openmetrics import compare_metrics


def write_monitoring(
    documents: Sequence[CompareDocument],
    openmetrics_file: str | None,
    junit_file: str | None,
    change: RunsComparison | None = None,
) -> None:
    """Writes comparisons as OpenMetrics text and as JUnit XML, each if a file is named.

    Args:
        documents: The comparisons.
        openmetrics_file: Path or ``-``.
        junit_file: Path or ``-``.
        change: The change since a stored run, for the JUnit file.

    Raises:
        SpaceError: if a file cannot be written.
    """
    if openmetrics_file is not None:
        write_text(openmetrics_file, compare_metrics(documents))
    if junit_file is not None:
        suites = [compare_suite(document) for document in documents]
        if change is not None:
            suites.append(change_suite(change))
        write_text(junit_file, junit_xml(suites))
