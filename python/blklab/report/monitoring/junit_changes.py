"""A comparison with a stored run as JUnit XML: what `--against RUN --junit` adds to the file."""

from __future__ import annotations

from collections.abc import Iterator

from blklab.analysis.between_runs import Change, RunsComparison
from blklab.quantities.formatting import metric_title, ratio_text
from blklab.report.monitoring.junit import TestCase, TestSuite
from blklab.report.sentences.changes import change_remark_text
from blklab.report.text.between_runs import outcome_words


def change_suite(found: RunsComparison) -> TestSuite:
    """By the metric that decides each workload, no scheduler is worse in the newer run."""
    target = found.second.spec.target
    return TestSuite(
        name=f"blklab compare {target} against {found.first.run_id}",
        cases=[*_cases(found)],
        properties={
            "run": found.second.run_id,
            "baseline": found.first.run_id,
            "confidence": str(found.confidence),
            "margin": str(found.margin),
            "remarks": "; ".join(map(change_remark_text, found.remarks)),
        },
        timestamp=found.second.created_at,
    )


def _cases(found: RunsComparison) -> Iterator[TestCase]:
    if not found.judged:
        nothing = "the two runs have no workload and scheduler in common"
        yield TestCase("there is something to compare", nothing, error=nothing)
    for change in found.judged:
        yield _case(change)


def _case(change: Change) -> TestCase:
    ratio = ratio_text(change.ratio, change.ci_low, change.ci_high)
    text = f"{ratio} of the baseline, {outcome_words(change)}"
    return TestCase(
        f"{metric_title(change.metric)} of {change.scheduler} under {change.workload} is not worse",
        text,
        failure=text if change.outcome == "worse" else None,
        skipped=text if change.outcome == "undecided" else None,
    )
