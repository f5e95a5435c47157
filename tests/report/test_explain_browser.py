"""The page of one run in a real browser: quiet, complete, every chart drawn, on wide and narrow screens."""

from __future__ import annotations

from pathlib import Path

import pytest
from trace_cases import CASES, HOSTILE, cast_for

from blklab.report.trace.document import explain_document
from blklab.report.trace.holding import holding_of
from blklab.report.trace.html import render_explanation_page
from chromium import Page
from page_checks import (
    assert_headings_and_captions,
    assert_printable,
    assert_quiet_and_fitting,
    charts_of,
    open_text,
    poor_contrast,
)

pytestmark = pytest.mark.browser


def _load(page: Page, folder: Path, case: str) -> Path:
    traced = cast_for(case)
    holding = holding_of(traced)
    html = render_explanation_page(traced, holding, explain_document(traced, holding))
    return open_text(page, folder / f"{case}.html", html)


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("case", CASES)
def test_quiet_complete_and_fitting(page: Page, tmp_path: Path, case: str, width: int) -> None:
    page.emulate(width=width)
    file = _load(page, tmp_path, case)
    assert_quiet_and_fitting(page, file)
    charts = charts_of(page)
    for chart in charts:
        # The curve of a job whose I/Os all took the same time is a point: its mark is all there is to see.
        lost = chart["marks"] - chart["drawn"]
        assert lost == 0 or (chart["kind"] == "exceedance" and chart["drawn"] >= lost), chart
    kinds = [chart["kind"] for chart in charts]
    expected = {"exceedance", "density"}
    if case != "memory-only":
        expected |= {"position", "holders", "depths", "latencies"}
    assert set(kinds) == expected
    few = case in ("sequential", "many-jobs", "one-request", "memory-only")
    # Of an array each disk is drawn by itself.
    expected_positions = 4 if case == "array" else (case != "memory-only") + (not few)
    assert kinds.count("position") == expected_positions


@pytest.mark.parametrize("case", ["two-jobs", "log", "many-jobs"])
@pytest.mark.parametrize("dark", [False, True])
def test_text_has_contrast(page: Page, tmp_path: Path, case: str, dark: bool) -> None:
    page.emulate(width=1280, dark=dark)
    _load(page, tmp_path, case)
    assert poor_contrast(page) == []


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
    assert_printable(page, tmp_path / "run.pdf")


def test_headings_and_tables_are_sane(page: Page, tmp_path: Path) -> None:
    page.emulate(width=1280)
    _load(page, tmp_path, "two-jobs")
    assert_headings_and_captions(page)
