"""A comparison as JUnit XML, the form in which CI systems show results: what `--junit` writes.

A test case is a statement about the comparison: it passes, fails, or is skipped while the experiment has not
settled it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from xml.etree import ElementTree as ET  # written here, never parsed

from blklab.quantities.formatting import join_names, metric_title, rounded
from blklab.report.documents.comparison import CompareDocument, MetricVerdictPart
from blklab.report.documents.parts import PairPart
from blklab.report.summary.failures import failures_of
from blklab.report.summary.standing import (
    deciding_verdict,
    differing_controls,
    has_open_question,
    is_in_force,
    judged_workloads,
    labels_of,
    pairs_against,
    reversed_pair,
)
from blklab.report.text.answer import answer_of
from blklab.report.text.wording import finding

_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class TestCase:
    """A statement and what became of it; without failure, error and skip it passed."""

    name: str
    text: str
    """The finding in words."""
    failure: str | None = None
    """Reason why the statement is false."""
    error: str | None = None
    """Reason why it could not be tested."""
    skipped: str | None = None
    """Reason why it is open."""


@dataclass(frozen=True)
class TestSuite:
    """The statements about one target or study."""

    name: str
    cases: Sequence[TestCase]
    properties: dict[str, str] = field(default_factory=dict)
    timestamp: str | None = None


def junit_xml(suites: Sequence[TestSuite]) -> str:
    """Test suites as the text of one XML file (UTF-8)."""
    root = ET.Element("testsuites", _counts([case for suite in suites for case in suite.cases]))
    root.set("name", "blklab")
    for suite in suites:
        element = ET.SubElement(root, "testsuite", {"name": _legal(suite.name), **_counts(suite.cases)})
        if suite.timestamp is not None:
            element.set("timestamp", suite.timestamp)
        properties = ET.SubElement(element, "properties")
        for name, value in suite.properties.items():
            ET.SubElement(properties, "property", {"name": _legal(name), "value": _legal(value)})
        for case in suite.cases:
            _add_case(element, suite, case)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=False).join(
        ('<?xml version="1.0" encoding="UTF-8"?>\n', "\n")
    )


def compare_suite(document: CompareDocument) -> TestSuite:
    """The statements about a comparison."""
    return TestSuite(
        name=f"blklab compare {document.target}",
        cases=[*_cases(document)],
        properties={
            "run": document.run,
            "blklab_version": document.blklab_version,
            "confidence": str(document.confidence),
            "margin": str(document.margin),
            "schedulers": ", ".join(labels_of(document)),
        },
        timestamp=document.created_at,
    )


def _cases(document: CompareDocument) -> Iterator[TestCase]:
    yield _load_ran(document)
    yield _answer(document)
    judged = judged_workloads(document)
    for workload in judged if len(judged) > 1 else []:
        yield _workload(document, workload)
    differing = differing_controls(document)
    for control in (str(one["name"]) for one in document.workloads if one["control"]):
        differs = f"{control} differs between schedulers, which none of them can influence"
        yield TestCase(
            f"control {control} does not differ",
            differs if control in differing else f"no difference was found under {control}",
            failure=differs if control in differing else None,
        )
    for choice in document.schedulers:
        if choice["kernel"] is None and is_in_force(document, str(choice["label"])):
            yield _in_force(document, str(choice["label"]))


def _load_ran(document: CompareDocument) -> TestCase:
    failures = [f"{one.where}: {one.error}" for one in failures_of(document)]
    text = "\n".join(failures) or "no run failed"
    first = f"{len(document.failed_runs)} failed, first {failures[0]}" if failures else None
    return TestCase("all runs succeeded", text, error=first)


def _answer(document: CompareDocument) -> TestCase:
    said = answer_of(document).sentence
    return TestCase(
        "verdict",
        said,
        failure=document.verdict.text if document.verdict.status == "withheld" else None,
        skipped=said if has_open_question(document) else None,
    )


def _workload(document: CompareDocument, workload: str) -> TestCase:
    verdict = deciding_verdict(document, workload)
    name = f"workload {workload} has a verdict"
    if verdict is None:
        return TestCase(name, "", error="no run gave the figure that decides")
    text = f"by {metric_title(verdict.metric)}: {finding(document, verdict)}"
    return TestCase(name, text, skipped=text if verdict.status == "undecided" else None)


def _in_force(document: CompareDocument, label: str) -> TestCase:
    """The scheduler in force loses to no other beyond the margin."""
    lost = [sentence for pair, sentence in _pairs_of(document, label) if pair.outcome == "worse"]
    is_open = [pair.second for pair, _ in _pairs_of(document, label) if pair.outcome == "undecided"]
    against = join_names(list(dict.fromkeys(is_open)))
    return TestCase(
        f"{label}, in force, is not beaten",
        "\n".join(lost) or (f"undecided against {against}" if is_open else "no other is better"),
        failure=lost[0] if lost else None,
        skipped=f"undecided against {against}" if is_open and not lost else None,
    )


def _pairs_of(document: CompareDocument, label: str) -> Iterator[tuple[PairPart, str]]:
    """The pairs that the verdict rests on, each seen from the scheduler, with the pair in words."""
    if document.goal is not None:
        for pair in document.goal.comparisons:
            if label in (pair.first, pair.second):
                own = pair if pair.first == label else reversed_pair(pair)
                yield own, _in_words(own, f"the goal {document.goal.goal}")
        return
    for workload in judged_workloads(document):
        verdict: MetricVerdictPart | None = deciding_verdict(document, workload)
        if verdict is None:
            continue
        for other in pairs_against(document, workload, verdict.metric, label).values():
            own = reversed_pair(other)
            yield own, _in_words(own, f"{metric_title(verdict.metric)} under {workload}")


def _in_words(pair: PairPart, where: str) -> str:
    interval = ""
    if pair.ci_low is not None and pair.ci_high is not None:
        interval = f" [{rounded(pair.ci_low)}, {rounded(pair.ci_high)}]"
    return f"{pair.first} over {pair.second} in {where}: {rounded(pair.ratio)}{interval}"


def _add_case(parent: ET.Element, suite: TestSuite, case: TestCase) -> None:
    element = ET.SubElement(
        parent, "testcase", {"classname": _legal(suite.name), "name": _legal(case.name), "time": "0"}
    )
    for tag, reason in (("error", case.error), ("failure", case.failure), ("skipped", case.skipped)):
        if reason is not None:
            outcome = ET.SubElement(element, tag, {"message": _legal(reason)})
            if tag != "skipped":
                outcome.set("type", tag)
                outcome.text = _legal(case.text)
            break
    ET.SubElement(element, "system-out").text = _legal(case.text)


def _counts(cases: Sequence[TestCase]) -> dict[str, str]:
    errors = [case for case in cases if case.error is not None]
    failures = [case for case in cases if case.error is None and case.failure is not None]
    skipped = [
        case for case in cases if case.error is None and case.failure is None and case.skipped is not None
    ]
    return {
        "tests": str(len(cases)),
        "failures": str(len(failures)),
        "errors": str(len(errors)),
        "skipped": str(len(skipped)),
        "time": "0",
    }


def _legal(text: str) -> str:
    """The text without characters that XML 1.0 cannot hold."""
    return _NOT_IN_XML.sub("\ufffd", text)
