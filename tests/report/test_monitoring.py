"""Results as OpenMetrics text and JUnit XML: what other programs read is what the document says."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from report_cases import CASES, analysed

from blklab.analysis.metrics import METRICS
from blklab.cli import run
from blklab.errors import ExitCode
from blklab.report.documents.comparison import CompareDocument, compare_document
from blklab.report.monitoring.families import Families
from blklab.report.monitoring.junit import TestCase as Case
from blklab.report.monitoring.junit import TestSuite as Suite
from blklab.report.monitoring.junit import compare_suite, junit_xml
from blklab.report.monitoring.openmetrics import compare_metrics

parser = pytest.importorskip("prometheus_client.openmetrics.parser", reason="needs prometheus-client")
older_parser = pytest.importorskip("prometheus_client.parser", reason="needs prometheus-client")

JOB = (
    "; purpose: Random reads.\n[reader]\nrw=randread\nbs=4k\ndirect=1\nioengine=libaio\niodepth=8\n"
    "time_based\nruntime=200ms\n"
)
DEVICE = "sim:fixed,latency=200us,depth=4,jitter=40us"

Labels = frozenset[tuple[str, str]]


def document_of(case: str) -> CompareDocument:
    return compare_document(*analysed(case))


def samples_of(text: str) -> dict[tuple[str, Labels], float]:
    """Samples by name and labels, as the parsers of OpenMetrics and of Prometheus' older format see them."""
    found = _samples(parser.text_string_to_metric_families(text))
    assert _samples(older_parser.text_string_to_metric_families(text)) == found
    return found


def _samples(families: Iterable[object]) -> dict[tuple[str, Labels], float]:
    found: dict[tuple[str, Labels], float] = {}
    for family in families:
        assert family.type == "gauge", family.name  # type: ignore[attr-defined]
        for sample in family.samples:  # type: ignore[attr-defined]
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in found, key
            found[key] = sample.value
    return found


def value_of(samples: dict[tuple[str, Labels], float], name: str, **labels: str) -> float | None:
    return samples.get((f"blklab_{name}", frozenset(labels.items())))


@pytest.mark.parametrize("case", CASES)
def test_metrics_are_valid_and_hold_what_the_document_says(case: str) -> None:
    document = document_of(case)
    samples = samples_of(compare_metrics([document]))
    assert all(math.isfinite(value) for value in samples.values())
    names = {
        "iops": ("iops", 1.0),
        "latency_p99": ("latency_p99_seconds", 1e-6),
        "throughput": ("throughput_bytes_per_second", 1.0),
    }
    place = {"target": document.target}
    for result in document.results:
        if result.metric in names:
            name, factor = names[result.metric]
            labels = {**place, "workload": result.workload, "scheduler": result.scheduler}
            assert value_of(samples, name, **labels) == pytest.approx(result.mean * factor)
            low = value_of(samples, name.replace(result.metric, f"{result.metric}_ci_low"), **labels)
            assert low == (None if result.ci_low is None else pytest.approx(result.ci_low * factor))
    for status in ("best", "equal", "undecided", "withheld"):
        assert value_of(samples, "verdict", status=status, **place) == (status == document.verdict.status)
    for choice in document.schedulers:
        best = value_of(samples, "verdict_best", scheduler=choice["label"], **place)
        assert best == (choice["label"] in document.verdict.best)
    assert value_of(samples, "comparison_failed_runs", **place) == len(document.failed_runs)


def test_pairs_carry_ratio_interval_and_outcome() -> None:
    document = document_of("decided")
    samples = samples_of(compare_metrics([document]))
    pair = next(
        one
        for one in document.comparisons
        if one.workload == "random-read-4k-qd32" and one.metric == "iops" and one.outcome == "better"
    )
    labels = {
        "target": document.target,
        "workload": pair.workload,
        "metric": pair.metric,
        "first": pair.first,
        "second": pair.second,
    }
    assert value_of(samples, "pair_ratio", **labels) == pytest.approx(pair.ratio)
    assert value_of(samples, "pair_ci_low_ratio", **labels) == pytest.approx(pair.ci_low)
    assert value_of(samples, "pair_ci_high_ratio", **labels) == pytest.approx(pair.ci_high)
    states = {
        outcome: value_of(samples, "pair_outcome", outcome=outcome, **labels)
        for outcome in ("better", "worse", "equal", "undecided")
    }
    assert states == {"better": 1, "worse": 0, "equal": 0, "undecided": 0}


def test_a_goal_has_its_scores() -> None:
    document = document_of("purpose")
    assert document.goal is not None
    samples = samples_of(compare_metrics([document]))
    score = document.goal.scores[0]
    labels = {"target": document.target, "goal": document.goal.goal, "metric": score.metric}
    found = value_of(samples, "goal_score_ratio", scheduler=score.scheduler, **labels)
    assert found == pytest.approx(score.mean)


def test_several_targets_share_their_families() -> None:
    first = document_of("decided")
    second = first.model_copy(update={"target": "sim:another"})
    samples = samples_of(compare_metrics([first, second]))
    targets = [dict(labels)["target"] for name, labels in samples if name == "blklab_comparison_info"]
    assert targets == [first.target, "sim:another"]


def test_every_metric_has_a_base_unit() -> None:
    document = document_of("decided")
    result = document.results[0]
    one_of_each = [
        result.model_copy(update={"metric": metric.name, "unit": metric.unit}) for metric in METRICS.values()
    ]
    samples = samples_of(compare_metrics([document.model_copy(update={"results": one_of_each})]))
    for metric in METRICS:
        assert any(name.startswith(f"blklab_{metric}") for name, _ in samples), metric


def test_awkward_labels_come_back() -> None:
    families = Families()
    awkward = 'line\nbreak, "quotes", back\\slash, {braces} and µ'
    families.add("value", 1.5, "Help with\na line break", label=awkward)
    families.add("value", None, "Help with\na line break", label="absent")
    assert samples_of(families.text()) == {("blklab_value", frozenset({("label", awkward)})): 1.5}


def cases_of(xml: str) -> dict[str, str]:
    """Outcome of each test case by name; the counts of the suites must agree with them."""
    root = ET.fromstring(xml)  # noqa: S314 - our own text
    found = {}
    for suite in root.iter("testsuite"):
        outcomes = []
        for case in suite.iter("testcase"):
            outcome = next(
                (tag for tag in ("error", "failure", "skipped") if case.find(tag) is not None), "passed"
            )
            outcomes.append(outcome)
            found[case.attrib["name"]] = outcome
        for tag, plural in (("error", "errors"), ("failure", "failures"), ("skipped", "skipped")):
            assert int(suite.attrib[plural]) == outcomes.count(tag)
        assert int(suite.attrib["tests"]) == len(outcomes)
    return found


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("decided", {"verdict": "passed", "all runs succeeded": "passed",
                     "control cached-read does not differ": "passed",
                     "workload random-read-4k-qd32 has a verdict": "passed"}),
        ("equal", {"verdict": "passed"}),
        ("undecided", {"verdict": "skipped", "workload write-ahead-log has a verdict": "skipped"}),
        ("depends", {"verdict": "passed"}),
        ("suspicious", {"verdict": "failure", "control cached-read does not differ": "failure"}),
        ("damaged", {"all runs succeeded": "error", "verdict": "skipped"}),
        ("empty", {"verdict": "skipped"}),
    ],
)  # fmt: skip
def test_junit_states_what_became_of_each_statement(case: str, expected: dict[str, str]) -> None:
    found = cases_of(junit_xml([compare_suite(document_of(case))]))
    assert expected.items() <= found.items()


@pytest.mark.parametrize("case", CASES)
def test_the_scheduler_in_force_fails_only_where_another_is_better(case: str) -> None:
    document = document_of(case)
    default = document.target_description.default_scheduler
    found = cases_of(junit_xml([compare_suite(document)]))
    outcome = found.get(f"{default}, in force, is not beaten")
    decides = {(one.workload, one.metric) for one in document.verdicts if one.decides}
    controls = {one["name"] for one in document.workloads if one["control"]}
    pairs = document.goal.comparisons if document.goal is not None else [
        one
        for one in document.comparisons
        if (one.workload, one.metric) in decides and one.workload not in controls
    ]  # fmt: skip
    lost = any(
        (one.first == default and one.outcome == "worse")
        or (one.second == default and one.outcome == "better")
        for one in pairs
    )
    if outcome is not None:
        assert (outcome == "failure") == lost


def test_some_case_beats_the_scheduler_in_force() -> None:
    outcomes = [
        outcome
        for case in CASES
        for name, outcome in cases_of(junit_xml([compare_suite(document_of(case))])).items()
        if name.endswith("in force, is not beaten")
    ]
    assert {"passed", "failure", "skipped"} <= set(outcomes)


def test_junit_drops_what_xml_cannot_hold() -> None:
    suite = Suite("name\x00", [Case("case\x1b[1m", "text\x07 & <b>", failure="]]> \ud800")], {"a": "\x0b"})
    root = ET.fromstring(junit_xml([suite]))  # noqa: S314
    case = next(root.iter("testcase"))
    assert case.attrib["name"] == "case\ufffd[1m"
    assert case.findtext("system-out") == "text\ufffd & <b>"


def test_commands_write_both_and_a_stored_run_gives_them_again(
    capsys: pytest.CaptureFixture[str], job: str, tmp_path: Path
) -> None:
    metrics, junit, page = tmp_path / "m.txt", tmp_path / "j.xml", tmp_path / "r.html"
    arguments = ["compare", DEVICE, "-w", job, "-s", "none,mq-deadline", "--blocks", "3", "-q"]
    files = ["--openmetrics", str(metrics), "--junit", str(junit), "--html", str(page)]
    assert run([*arguments, *files]) == 0
    assert "verdict" in cases_of(junit.read_text("utf-8"))
    assert "none" in capsys.readouterr().out
    assert run(["report", "latest", "--openmetrics", "-"]) == 0
    again = capsys.readouterr().out
    assert again == metrics.read_text("utf-8")
    assert run(["report", "latest", "--junit", "-"]) == 0
    assert capsys.readouterr().out == junit.read_text("utf-8")
    assert samples_of(again)


def test_a_single_run_writes_its_jobs(capsys: pytest.CaptureFixture[str], job: str, tmp_path: Path) -> None:
    document_file = tmp_path / "run.json"
    arguments = ["run", DEVICE, job, "--scheduler", "none", "--json", str(document_file), "-q"]
    assert run([*arguments, "--openmetrics", "-"]) == 0
    samples = samples_of(capsys.readouterr().out)
    job_part = json.loads(document_file.read_text())["jobs"][0]
    labels = {
        "target": DEVICE,
        "workload": "reads",
        "scheduler": "none",
        "job": "reader",
        "direction": "read",
    }
    assert value_of(samples, "job_iops", **labels) == pytest.approx(job_part["read"]["iops"])
    p99 = value_of(samples, "job_latency_p99_seconds", **labels)
    assert p99 == pytest.approx(job_part["read"]["latency_us"]["p99"] / 1e6)


def test_standard_output_takes_one_result(capsys: pytest.CaptureFixture[str], job: str) -> None:
    for arguments in (["compare", DEVICE, "-w", job], ["report"], ["study", "run", "ionice"]):
        assert run([*arguments, "--junit", "-", "--openmetrics", "-"]) == ExitCode.USAGE
        assert "only one of the results" in capsys.readouterr().err


def test_the_reference_names_every_family_of_comparisons() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "monitoring.md").read_text("utf-8")
    named = set(re.findall(r"`(blklab_\w+)`", page))
    found = {name for case in CASES for name, _ in samples_of(compare_metrics([document_of(case)]))}
    others = {name for name in found if not name.startswith(tuple(f"blklab_{metric}" for metric in METRICS))}
    assert others <= named
    comparison = named - {name for name in named if re.match("blklab_(job|command|study)_", name)}
    assert comparison <= found


def test_files_are_written_even_if_nobody_reads_the_report(job: str, tmp_path: Path) -> None:
    files = {"--json": "r.json", "--openmetrics": "m.txt", "--junit": "j.xml"}
    arguments = [word for flag, name in files.items() for word in (flag, str(tmp_path / name))]
    command = [
        sys.executable,
        "-m",
        "blklab",
        "compare",
        DEVICE,
        "-w",
        job,
        "-s",
        "none,bfq",
        "--blocks",
        "2",
    ]
    read, write = os.pipe()
    os.close(read)
    ended = subprocess.run([*command, *arguments, "-q"], stdout=write, check=False)
    os.close(write)
    assert ended.returncode == 0
    assert all((tmp_path / name).stat().st_size for name in files.values())
