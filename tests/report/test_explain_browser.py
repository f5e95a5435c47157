"""The page of one run in a real browser: quiet, complete, every chart drawn, on wide and narrow screens."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import Page, find_chromium, open_page
from inside_cases import CASES, HOSTILE, cast_for
from test_browser import MARKS_OF_CHARTS, POOR_CONTRAST

from blklab.report.inside.document import explain_document
from blklab.report.inside.holding import holding_of
from blklab.report.inside.html import render_explanation_page

pytestmark = pytest.mark.browser

MARKS = MARKS_OF_CHARTS.replace(".mark, .curve, .hill", ".mark, .curve, .hill, .dots, .band, .head-path")


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    program = find_chromium()
    if program is None:
        pytest.skip("there is no chromium here (Debian: chromium)")
    with open_page(program) as opened:
        yield opened


def _load(page: Page, folder: Path, case: str) -> Path:
    cast = cast_for(case)
    holding = holding_of(cast)
    file = folder / f"{case}.html"
    file.write_text(render_explanation_page(cast, holding, explain_document(cast, holding)), encoding="utf-8")
    page.errors.clear()
    page.requests.clear()
    page.load(file)
    return file


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("case", CASES)
def test_quiet_complete_and_fitting(page: Page, tmp_path: Path, case: str, width: int) -> None:
    page.emulate(width=width)
    file = _load(page, tmp_path, case)
    page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))")
    assert page.errors == []
    assert page.requests == [file.as_uri()]
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    charts = page.evaluate(MARKS)
    for chart in charts:
        assert chart["images"] == 1, chart
        assert 0.75 <= chart["scale"] <= 1.35, chart
        # The curve of a job whose I/Os all took the same time is a point: its mark is all there is to see.
        lost = chart["marks"] - chart["drawn"]
        assert lost == 0 or (chart["kind"] == "exceedance" and chart["drawn"] >= lost), chart
        assert chart["outside"] == 0, chart
        assert chart["marks"] > 0, chart
    kinds = [chart["kind"] for chart in charts]
    expected = {"exceedance", "density"}
    if case != "memory-only":
        expected |= {"position", "holders", "depths", "latencies"}
    assert set(kinds) == expected
    few = case in ("sequential", "many-jobs", "one-request", "memory-only")
    assert kinds.count("position") == (case != "memory-only") + (not few)


@pytest.mark.parametrize("case", ["two-jobs", "log", "many-jobs"])
@pytest.mark.parametrize("dark", [False, True])
def test_text_has_contrast(page: Page, tmp_path: Path, case: str, dark: bool) -> None:
    page.emulate(width=1280, dark=dark)
    _load(page, tmp_path, case)
    assert page.evaluate(POOR_CONTRAST) == []


def test_hostile_names_run_nothing(page: Page, tmp_path: Path) -> None:
    page.emulate(width=1280)
    _load(page, tmp_path, "one-request")
    assert page.evaluate("document.querySelector('.legend span').textContent") == HOSTILE
    assert page.evaluate("document.querySelectorAll('script').length") == 2
    assert page.evaluate("document.querySelectorAll('b:not(.eyebrow b)').length") == 0


def test_a_job_of_the_legend_stands_out(page: Page, tmp_path: Path) -> None:
    page.emulate(width=1280)
    _load(page, tmp_path, "two-jobs")
    dimmed = (
        "[...new Set([...document.querySelectorAll('g.series.dimmed')].map((one) => one.dataset.series))]"
    )
    assert page.evaluate(dimmed) == []
    page.evaluate("document.querySelector('.legend button[data-series=reader]').click()")
    assert page.evaluate(dimmed) == ["writers"]
    page.evaluate("document.querySelector('.legend button[data-series=reader]').click()")
    assert page.evaluate(dimmed) == []


def test_paper(page: Page, tmp_path: Path) -> None:
    page.emulate(width=1280)
    _load(page, tmp_path, "two-jobs")
    page.pdf(tmp_path / "run.pdf")
    assert (tmp_path / "run.pdf").read_bytes().startswith(b"%PDF")
    assert page.errors == []


def test_headings_and_tables_are_sane(page: Page, tmp_path: Path) -> None:
    page.emulate(width=1280)
    _load(page, tmp_path, "two-jobs")
    levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map((one) => +one.tagName[1])")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later - earlier <= 1 for earlier, later in itertools.pairwise(levels))
    assert page.evaluate("[...document.querySelectorAll('table')].every((one) => one.caption)")
    assert page.evaluate("document.querySelectorAll('svg[role=img]:not([aria-label])').length") == 0
