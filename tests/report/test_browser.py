"""The HTML report in a real browser: no error, no request, every chart drawn, on wide and narrow screens."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest
from report_cases import CASES, analysed, html_of

from chromium import Page
from page_checks import (
    assert_headings_and_captions,
    assert_printable,
    assert_quiet_and_fitting,
    charts_of,
    open_text,
    poor_contrast,
)
from waiting import wait_until

pytestmark = pytest.mark.browser


def _load(page: Page, folder: Path, case: str) -> Path:
    return open_text(page, folder / f"{case}.html", html_of(case))


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("case", CASES)
def test_quiet_complete_and_fitting(page: Page, tmp_path: Path, case: str, width: int) -> None:
    page.emulate(width=width)
    file = _load(page, tmp_path, case)
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert_quiet_and_fitting(page, file)
    charts = charts_of(page)
    for chart in charts:
        assert chart["drawn"] == chart["marks"], chart
    workloads = len(analysed(case)[0].spec.workloads)
    kinds = [chart["kind"] for chart in charts]
    expected = set() if case == "empty" else {"forest", "relative", "exceedance", "density", "sequence"}
    for kind in expected:
        assert kinds.count(kind) >= workloads, kind


def test_no_text_of_a_narrow_chart_lies_on_the_dashed_line(page: Page, tmp_path: Path) -> None:
    page.emulate(width=360)
    for case in ("decided", "twelve", "undecided"):
        _load(page, tmp_path, case)
        crossed = """[...document.querySelectorAll('[data-chart=relative] svg.narrow')].flatMap((chart) => {
          const boxes = (css) => [...chart.querySelectorAll(css)].map((one) => one.getBoundingClientRect());
          const lines = boxes('.leader');
          return boxes('.name, .value, .standing').map((text) => lines.filter((line) =>
            text.left < line.right && line.left < text.right
            && text.top < line.bottom && line.top < text.bottom
          ).length);
        })"""
        found = page.evaluate(crossed)
        assert found and not any(found), case


def test_every_run_has_its_mark(page: Page, tmp_path: Path) -> None:
    page.emulate(width=1280)
    _load(page, tmp_path, "twelve")
    count = "document.querySelectorAll('[data-chart=sequence] svg.wide {}').length"
    assert page.evaluate(count.format(".mark")) == 239
    assert page.evaluate(count.format(".failed-run")) == 1


@pytest.mark.parametrize("case", ["decided", "undecided", "damaged", "suspicious"])
@pytest.mark.parametrize("dark", [False, True])
def test_text_has_contrast(page: Page, tmp_path: Path, case: str, dark: bool) -> None:
    page.emulate(width=1280, dark=dark)
    _load(page, tmp_path, case)
    assert poor_contrast(page) == []


def test_dark_and_light_differ_and_paper_is_light(page: Page, tmp_path: Path) -> None:
    _load(page, tmp_path, "equal")
    background = "getComputedStyle(document.body).backgroundColor"
    mark = "getComputedStyle(document.querySelector('svg.wide .mark')).fill"
    page.emulate(width=1280, dark=False)
    light = page.evaluate(background), page.evaluate(mark)
    page.emulate(width=1280, dark=True)
    dark = page.evaluate(background), page.evaluate(mark)
    page.emulate(width=1280, dark=True, media="print")
    assert light[0] == "rgb(255, 255, 255)"
    assert all(a != b for a, b in zip(light, dark, strict=True))
    assert (page.evaluate(background), page.evaluate(mark)) == light


def test_paper(page: Page, tmp_path: Path) -> None:
    page.emulate(width=1280)
    _load(page, tmp_path, "decided")
    assert_printable(page, tmp_path / "report.pdf")


@pytest.mark.parametrize("case", CASES)
def test_paper_is_one_sheet_whatever_the_screen_shows(page: Page, tmp_path: Path, case: str) -> None:
    page.emulate(width=1280, media="")  # the medium that printing chooses
    _load(page, tmp_path, case)
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    for width, height in ((8.27, 11.69), (8.5, 11)):  # A4 and Letter, in inches
        paper = page.command("Page.printToPDF", paperWidth=width, paperHeight=height)
        sheets = re.findall(rb"/Type\s*/Page\b", base64.b64decode(paper["data"]))
        assert len(sheets) == 1, (width, height)


def test_paper_begins_with_answer_and_chart(page: Page, tmp_path: Path) -> None:
    page.emulate(width=718, height=1047, media="print")  # A4 in CSS pixels within usual margins
    for case in ("decided", "equal", "undecided"):
        _load(page, tmp_path, case)
        place = "document.querySelector('{}').getBoundingClientRect().bottom"
        bottoms = [page.evaluate(place.format(one)) for one in ("h1", "figure.chart")]
        assert 0 < bottoms[0] < bottoms[1] < 1047, case
        shown = (
            "[...document.querySelectorAll('.contents, .cite a')].some((one) => one.offsetParent !== null)"
        )
        assert not page.evaluate(shown)


def test_a_chart_is_saved_as_a_picture(page: Page, tmp_path: Path) -> None:
    page.emulate(width=1280)
    _load(page, tmp_path, "equal")
    page.command("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    link = "document.querySelector('.cite a')"
    file = tmp_path / page.evaluate(f"{link}.download")
    page.evaluate(f"{link}.click()")
    wait_until(file.exists, f"{file} is saved")
    page.load(file)
    marks = "[...document.querySelectorAll('.mark')]"
    shown = "[getComputedStyle(one).fill, one.getBBox().width]"
    found = page.evaluate(f"{marks}.map((one) => {shown})")
    assert len({fill for fill, _ in found}) == len(analysed("equal")[0].spec.schedulers)
    assert all(width > 0 for _, width in found)
    assert page.errors == []


def test_hostile_text_runs_nothing(page: Page, tmp_path: Path) -> None:
    page.emulate(width=1280)
    _load(page, tmp_path, "damaged")
    assert page.evaluate("document.title").startswith("Not known yet")
    assert page.evaluate("document.querySelectorAll('script').length") == 2
    assert page.evaluate("document.querySelectorAll('img, b:not(.eyebrow b, dd b, .finding b)').length") == 0
    assert page.errors == []


def test_the_policy_stops_foreign_script_and_requests(page: Page, tmp_path: Path) -> None:
    """Even if escaping failed, no script would run: the test inserts what escaping keeps out."""
    html = html_of("equal")
    foreign = "<script>document.title='taken over'</script><img src='http://127.0.0.1:9/x.png'>"
    file = tmp_path / "broken.html"
    file.write_text(html.replace("<main>", f"<main>{foreign}"), encoding="utf-8")
    page.emulate(width=1280)
    page.load(file)
    assert page.evaluate("document.title") != "taken over"
    # The browser reports both violations, which also shows that the other tests would hear of one.
    page.evaluate("new Promise((done) => setTimeout(done, 100))")
    assert len([error for error in page.errors if "Content Security Policy" in error]) >= 2
    page.errors.clear()


def test_what_the_script_adds(page: Page, tmp_path: Path) -> None:
    page.emulate(width=1280)
    _load(page, tmp_path, "decided")
    dimmed = "[...document.querySelectorAll('.workload')[0].querySelectorAll('g.series.dimmed')].length"
    assert page.evaluate(dimmed) == 0
    button = "document.querySelector('.legend button[data-series=kyber]')"
    page.evaluate(f"{button}.click()")
    assert page.evaluate(f"{button}.getAttribute('aria-pressed')") == "true"
    assert page.evaluate(dimmed) > 0
    names = "[...new Set([...document.querySelectorAll('g.series.dimmed')].map((one) => one.dataset.series))]"
    assert sorted(page.evaluate(names)) == ["bfq", "mq-deadline", "none"]
    page.evaluate(f"{button}.click()")
    assert page.evaluate(dimmed) == 0

    place = page.evaluate(
        "(() => { const mark = document.querySelector('[data-chart=forest] svg.wide .mark');"
        " mark.scrollIntoView({block: 'center', behavior: 'instant'});"
        " const box = mark.getBoundingClientRect();"
        " return [box.x + box.width / 2, box.y + box.height / 2]; })()"
    )
    # Scrolling hides the tip, and tells so in a later frame.
    page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))")
    page.command("Input.dispatchMouseEvent", type="mouseMoved", x=place[0], y=place[1])
    tip = page.evaluate(
        "document.getElementById('tip').hidden ? '' : document.getElementById('tip').textContent"
    )
    assert tip.startswith("none: ")

    page.evaluate("location.hash = '#workload-2'; document.getElementById('workload-2').open = false")
    page.evaluate("location.hash = ''")
    page.evaluate("location.hash = '#workload-2'")
    page.evaluate("new Promise((done) => setTimeout(done, 50))")
    assert page.evaluate("document.getElementById('workload-2').open")
    copy = "document.querySelector('button.copy')"
    page.evaluate(f"{copy}.click()")
    page.evaluate("new Promise((done) => setTimeout(done, 100))")
    assert page.evaluate(f"{copy}.textContent") in ("Copied", "Selected")
    assert page.errors == []


def test_headings_and_tables_are_sane(page: Page, tmp_path: Path) -> None:
    page.emulate(width=1280)
    _load(page, tmp_path, "decided")
    assert_headings_and_captions(page)
    assert page.evaluate("[...document.querySelectorAll('th')].every((one) => one.scope)")
