"""The HTML report in a real browser: no error, no request, every chart drawn, on wide and narrow screens."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import Page, find_chromium, open_page
from report_cases import CASES, analysed, html_of

pytestmark = pytest.mark.browser

MARKS_OF_CHARTS = """
[...document.querySelectorAll('figure.chart')].map((figure) => {
  const image = [...figure.querySelectorAll('svg')].find((svg) => svg.getBoundingClientRect().width > 0);
  const marks = image ? [...image.querySelectorAll('.mark, .curve, .hill, .failed-run')] : [];
  return {
    kind: figure.dataset.chart,
    folded: figure.closest('details:not([open])') !== null,
    drawn: marks.filter((mark) => {
      const box = mark.getBoundingClientRect();
      return Number.isFinite(box.x) && box.width + box.height > 0;
    }).length,
    marks: marks.length,
    scale: image ? image.getBoundingClientRect().width / image.viewBox.baseVal.width : 0,
    images: [...figure.querySelectorAll('svg')].filter((svg) => svg.getBoundingClientRect().width > 0).length,
    outside: marks.filter((mark) => {
      const box = mark.getBoundingClientRect(), frame = image.getBoundingClientRect();
      return box.left < frame.left - 8 || box.right > frame.right + 8
        || box.top < frame.top - 8 || box.bottom > frame.bottom + 8;
    }).length,
  };
})
"""

POOR_CONTRAST = """
(() => {
  const channels = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const linear = (value) => value <= 10.31475 ? value / 3294.6 : ((value / 255 + 0.055) / 1.055) ** 2.4;
  const luminance = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = channels(getComputedStyle(at).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.getClientRects().length) continue;
    if (['SCRIPT', 'STYLE'].includes(element.tagName)) continue;
    const style = getComputedStyle(element);
    const own = luminance(channels(element.closest('svg') ? style.fill : style.color));
    const back = luminance(channels(behind(element).join(' ')));
    const ratio = (Math.max(own, back) + 0.05) / (Math.min(own, back) + 0.05);
    if (ratio < 4.5) found.push(`${walker.currentNode.data.trim().slice(0, 30)}: ${ratio.toFixed(2)}`);
  }
  return [...new Set(found)];
})()
"""


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    program = find_chromium()
    if program is None:
        pytest.skip("there is no chromium here (Debian: chromium)")
    with open_page(program) as opened:
        yield opened


def _load(page: Page, folder: Path, case: str) -> Path:
    file = folder / f"{case}.html"
    file.write_text(html_of(case), encoding="utf-8")
    page.errors.clear()
    page.requests.clear()
    page.load(file)
    return file


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("case", CASES)
def test_quiet_complete_and_fitting(page: Page, tmp_path: Path, case: str, width: int) -> None:
    page.emulate(width=width)
    file = _load(page, tmp_path, case)
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))")
    assert page.errors == []
    assert page.requests == [file.as_uri()]
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    charts = page.evaluate(MARKS_OF_CHARTS)
    for chart in charts:
        assert chart["images"] == 1, chart
        # Letters of 12 and 13 px stay legible, and do not become a poster's.
        assert 0.75 <= chart["scale"] <= 1.35, chart
        assert chart["drawn"] == chart["marks"], chart
        assert chart["outside"] == 0, chart
        assert chart["marks"] > 0, chart
    workloads = len(analysed(case)[0].spec.workloads)
    kinds = [chart["kind"] for chart in charts]
    expected = set() if case == "empty" else {"forest", "relative", "exceedance", "density", "sequence"}
    for kind in expected:
        assert kinds.count(kind) >= workloads, kind


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
    assert page.evaluate(POOR_CONTRAST) == []


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
    page.pdf(tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
    assert page.errors == []


def test_hostile_text_runs_nothing(page: Page, tmp_path: Path) -> None:
    page.emulate(width=1280)
    _load(page, tmp_path, "damaged")
    assert page.evaluate("document.title").startswith("Undecided")
    assert page.evaluate("document.querySelectorAll('script').length") == 2
    assert page.evaluate("document.querySelectorAll('img, b:not(.eyebrow b, dd b, .finding b)').length") == 0
    assert page.errors == []


def test_the_policy_stops_foreign_script_and_requests(page: Page, tmp_path: Path) -> None:
    """Should escaping ever fail, nothing would run: shown by putting in what escaping keeps out."""
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
    levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map((one) => +one.tagName[1])")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later - earlier <= 1 for earlier, later in itertools.pairwise(levels))
    assert page.evaluate("[...document.querySelectorAll('table')].every((one) => one.caption)")
    assert page.evaluate("[...document.querySelectorAll('th')].every((one) => one.scope)")
    assert page.evaluate("document.querySelectorAll('svg[role=img]:not([aria-label])').length") == 0
