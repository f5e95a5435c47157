"""Every study on the simulator with --quick: its required findings, its page, its documents."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from blklab.labs.studies import replicable_study, replicable_study_names
from blklab.labs.studies.published.study import published_study_names
from blklab.labs.studies.replication.expectations import expected_of
from blklab.labs.studies.replication.options import StudyOptions
from blklab.labs.studies.replication.pages import IMAGES, quick_finding, study_page
from blklab.labs.studies.replication.report.document import study_document
from blklab.labs.studies.replication.report.drawing import draw
from blklab.labs.studies.replication.report.finding import STATEMENT_SIGNS
from blklab.labs.studies.replication.report.html import render_studies_html
from blklab.labs.studies.replication.report.monitoring import study_metrics, study_suites
from blklab.labs.studies.replication.report.short import render_short_study
from blklab.labs.studies.replication.study_folder import StudyFolder
from blklab.report.drawing.picture_frame import NARROW
from blklab.report.monitoring.junit import junit_xml
from blklab.report.pages.page_files import FOLDER
from blklab.report.terminal import Terminal
from study_expectations import unmet

ROOT = Path(__file__).parents[3]
PAGES = ROOT / "docs" / "appendix" / "studies"


@pytest.mark.parametrize("name", replicable_study_names())
def test_what_must_come_out_does(name: str) -> None:
    finding = quick_finding(name)
    assert unmet(expected_of(finding.folder, "sim"), finding.result) == []


@pytest.mark.parametrize("name", replicable_study_names())
def test_the_page_and_its_pictures_are_up_to_date(name: str) -> None:
    refresh = f"refresh with `python -m blklab.labs.studies.replication.pages docs/appendix/studies {name}`"
    page = study_page(quick_finding(name))
    assert (PAGES / f"{name}.md").read_text(encoding="utf-8") == page.text, refresh
    folder = PAGES / IMAGES / name
    assert {path.name for path in folder.iterdir()} == set(page.pictures), refresh
    for file, text in page.pictures.items():
        assert (folder / file).read_text(encoding="utf-8") == text, f"{file}: {refresh}"
        assert ET.fromstring(text).tag.endswith("svg")  # noqa: S314 - our own drawing
    tables = PAGES / FOLDER
    assert {path.name for path in tables.glob(f"{name}-*.csv")} == set(page.tables), refresh
    for file, text in page.tables.items():
        assert (tables / file).read_text(encoding="utf-8") == text, f"{file}: {refresh}"
    assert not re.search(r"\d{8}-\d{4}-\w{4}", page.text + "".join(page.tables.values())), (
        "names of stored runs change"
    )


def test_pages_are_those_of_studies() -> None:
    assert {path.stem for path in PAGES.glob("*.md")} == set(replicable_study_names())
    assert {path.name for path in (PAGES / IMAGES).iterdir()} == set(replicable_study_names())
    assert set(replicable_study_names()) <= set(published_study_names())


@pytest.mark.parametrize("name", replicable_study_names())
def test_names_are_unique_and_experiments_pure(name: str) -> None:
    study, folder = replicable_study(name), StudyFolder(name)
    assert name == study.name
    for place in study.backends:
        for quick in (True, False):
            options = StudyOptions(place, quick=quick, seed=3)
            experiments = list(study.experiments(options, folder))
            assert experiments
            assert len({one.name for one in experiments}) == len(experiments)
            assert all(one.spec.seed == 3 for one in experiments)
            assert experiments == list(study.experiments(options, folder))
    result = quick_finding(name).result
    for names in (
        [one.name for one in result.statements],
        [one.name for one in result.pictures],
        [(one.table, one.name) for one in result.values],
    ):
        assert 0 < len(set(names)) == len(names)
    for value in result.values:
        assert value.ours is not None or value.not_asked


@pytest.mark.parametrize("name", replicable_study_names())
def test_a_study_can_be_read_again_from_its_records(name: str) -> None:
    finding = quick_finding(name)
    again = replicable_study(name).read(finding.options, finding.folder, finding.records)
    assert again == finding.result


@pytest.mark.parametrize("name", replicable_study_names())
def test_the_folder_has_what_a_reader_needs(name: str) -> None:
    readme = (ROOT / "studies" / name / "README.md").read_text(encoding="utf-8")
    assert f"docs/appendix/studies/{name}.md" in readme
    assert len(readme.splitlines()) < 60, "one page"


@pytest.mark.parametrize("name", replicable_study_names())
def test_pictures_fit_small_screens_and_escape_names(name: str) -> None:
    for picture in quick_finding(name).result.pictures:
        drawing = ET.fromstring(str(draw(picture, width=NARROW)))  # noqa: S314 - our own drawing
        assert drawing.attrib["viewBox"].startswith(f"0 0 {NARROW:g} ")


@pytest.mark.parametrize("name", replicable_study_names())
def test_the_answers_fit_on_a_terminal(name: str) -> None:
    finding = quick_finding(name)
    written = io.StringIO()
    render_short_study(finding, Terminal(file=written, width=80), "study.html")
    lines = written.getvalue().splitlines()
    assert len(lines) <= 40
    text = " ".join(written.getvalue().split())
    assert text.endswith(f"{name}: {finding.tally()}.")
    assert "study.html" in text
    for one in finding.result.statements:
        if one.origin == "published" or one.outcome != "holds":
            assert f"{STATEMENT_SIGNS[one.outcome]} {one.says.removesuffix('.')}" in text
    assert "not asked" not in text
    assert "0.00000" not in text


def test_the_figures_that_differ_most_are_named() -> None:
    written = io.StringIO()
    render_short_study(quick_finding("iozone-raid10"), Terminal(file=written, width=100), None)
    lines = [" ".join(line.split()) for line in written.getvalue().splitlines()]
    first = next(number for number, line in enumerate(lines) if line.startswith("Figures: ")) + 1
    assert lines[first].startswith("published 3.30, ours 1.00, ratio 0.303 (64k; Sequential over")
    assert "blklab study run iozone-raid10 -v" in " ".join(lines)


def test_many_conclusions_are_cut() -> None:
    finding = quick_finding("hdparm-fifteen")
    again = [
        replace(one, name=f"{one.name}-{number}") for one in finding.result.statements for number in range(9)
    ]
    many = replace(finding, result=replace(finding.result, statements=again))
    written = io.StringIO()
    render_short_study(many, Terminal(file=written, width=80), None)
    assert len(written.getvalue().splitlines()) <= 40
    assert re.search(r"… and \d+ more \(-v\)", written.getvalue())
    assert f"{finding.name}: 9 of 90 published conclusions hold" in written.getvalue()


def test_the_document_satisfies_its_schema() -> None:
    schema = json.loads((ROOT / "docs" / "reference" / "schema" / "study-1.json").read_text(encoding="utf-8"))
    document = study_document([quick_finding(name) for name in replicable_study_names()])
    plain = json.loads(document.model_dump_json(by_alias=True))
    validator = Draft202012Validator(schema)
    validator.validate(plain)
    assert [one["name"] for one in plain["studies"]] == replicable_study_names()
    del plain["studies"][0]["statements"][0]["outcome"]
    assert not validator.is_valid(plain)


def test_monitoring_gets_every_statement_and_value() -> None:
    parser = pytest.importorskip("prometheus_client.openmetrics.parser", reason="needs prometheus-client")
    document = study_document([quick_finding(name) for name in replicable_study_names()])
    families = {one.name: one for one in parser.text_string_to_metric_families(study_metrics(document))}
    stated = {
        (sample.labels["study"], sample.labels["statement"]): sample.labels["outcome"]
        for sample in families["blklab_study_statement"].samples
        if sample.value == 1
    }
    assert stated == {
        (study.name, one.name): one.outcome for study in document.studies for one in study.statements
    }
    found = [sample.value for sample in families["blklab_study_value"].samples]
    assert found == [
        pytest.approx(one.ours.value) for study in document.studies for one in study.figures if one.ours
    ]
    root = ET.fromstring(junit_xml(study_suites(document)))  # noqa: S314 - our own text
    for study in document.studies:
        suite = next(one for one in root if one.get("name") == f"blklab study run {study.name}")
        failed = [case.get("name") for case in suite.iter("testcase") if case.find("failure") is not None]
        assert failed == [one.name for one in study.statements if one.outcome == "fails"]
        assert suite.get("tests") == str(len(study.statements) + 1)


def test_the_page_for_a_browser_has_everything() -> None:
    findings = [quick_finding(name) for name in replicable_study_names()]
    page = render_studies_html(findings)
    for finding in findings:
        assert f'id="study-{finding.name}"' in page
        assert page.count("<svg") >= 2 * len(finding.result.pictures)
        for record in finding.records.values():
            assert record.run_id in page
    assert "<script src" not in page and "http-equiv" in page


def test_the_page_of_one_study_has_its_title_once() -> None:
    finding = quick_finding("ionice")
    headings = re.findall(r"<h\d[^>]*>(.*?)</h\d>", render_studies_html([finding]))
    assert [heading for heading in headings if finding.title in heading] == [finding.title]
    both = [finding, quick_finding("ioband")]
    headings = re.findall(r"<h\d[^>]*>(.*?)</h\d>", render_studies_html(both))
    assert sum(any(one.title in heading for one in both) for heading in headings) == 2


def test_what_was_intended_is_not_called_published() -> None:
    finding = quick_finding("ioband")
    beside = {value.table: finding.headings(value.table)[0] for value in finding.result.values}
    assert beside["Case 2: shares of the rates"] == "published"
    assert beside["Today's controllers: shares"] == "intended"
    compared = {
        row["table"]: row["compared with"]
        for row in csv.DictReader(io.StringIO(study_page(finding).tables["ioband-values.csv"]))
    }
    assert compared == beside


def test_tallies_keep_published_conclusions_apart() -> None:
    finding = quick_finding("hdparm-fifteen")
    outcomes = [one.outcome for one in finding.result.statements if one.origin == "published"]
    assert {"holds", "fails"} <= set(outcomes)
    hold, fail = outcomes.count("holds"), outcomes.count("fails")
    text = f"{hold} of {len(outcomes)} published conclusions {'holds' if hold == 1 else 'hold'}, {fail} fail"
    assert finding.tally().startswith(text)
    assert finding.tally().endswith("statements of ours hold")


def test_the_command_writes_pages(tmp_path: Path) -> None:
    name = "hdparm-four-schedulers"  # the shortest
    old = tmp_path / IMAGES / name / "old.svg"
    old.parent.mkdir(parents=True)
    old.touch()
    subprocess.run(
        [sys.executable, "-m", "blklab.labs.studies.replication.pages", str(tmp_path), name], check=True
    )
    assert (tmp_path / f"{name}.md").read_text() == (PAGES / f"{name}.md").read_text()
    assert not old.exists()
