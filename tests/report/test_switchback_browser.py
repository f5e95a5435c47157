"""The report of a switchback in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from switchback_cases import SWITCHBACKS

from blklab.analysis.verdict import analyse
from blklab.report.documents.comparison import compare_document
from blklab.report.html.comparison import render_html
from chromium import Page
from page_checks import (
    assert_headings_and_captions,
    assert_quiet_and_fitting,
    charts_of,
    open_text,
    poor_contrast,
)

pytestmark = pytest.mark.browser


def _load(page: Page, folder: Path, case: str) -> Path:
    record = SWITCHBACKS[case]()
    return open_text(
        page, folder / f"{case}.html", render_html(record, compare_document(record, analyse(record)))
    )


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("case", SWITCHBACKS)
def test_quiet_complete_and_fitting(page: Page, tmp_path: Path, case: str, width: int) -> None:
    page.emulate(width=width)
    file = _load(page, tmp_path, case)
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert_quiet_and_fitting(page, file)
    assert_headings_and_captions(page)
    charts = charts_of(page)
    for chart in charts:
        assert chart["drawn"] == chart["marks"], chart
    assert {"narrowing", "load", "settling"} <= {chart["kind"] for chart in charts}


@pytest.mark.parametrize("dark", [False, True])
def test_text_has_contrast(page: Page, tmp_path: Path, dark: bool) -> None:
    page.emulate(width=1280, dark=dark)
    _load(page, tmp_path, "troubled")
    assert poor_contrast(page) == []


def test_the_legend_picks_a_scheduler_out_of_the_load(page: Page, tmp_path: Path) -> None:
    page.emulate(width=1280)
    _load(page, tmp_path, "undecided")
    page.evaluate("document.querySelector('.legend button[data-series=bfq]').click()")
    dimmed = "[...document.querySelectorAll('[data-chart={}] svg.wide g.series.dimmed')].length"
    assert [page.evaluate(dimmed.format(kind)) for kind in ("load", "settling", "narrowing")] == [6, 3, 2]
