"""Checks of every page in a browser."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from chromium import Page

_MARKS_OF_CHARTS = """
[...document.querySelectorAll('figure.chart')].map((figure) => {
  const image = [...figure.querySelectorAll('svg')].find((svg) => svg.getBoundingClientRect().width > 0);
  const kinds = '.mark, .curve, .hill, .failed-run, .dots, .band, .head-path';
  const marks = image ? [...image.querySelectorAll(kinds)] : [];
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

_POOR_CONTRAST = """
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


def open_text(page: Page, file: Path, html: str) -> Path:
    """Writes a page to a file and opens it; clears earlier errors."""
    file.write_text(html, encoding="utf-8")
    page.errors.clear()
    page.requests.clear()
    page.load(file)
    return file


def charts_of(page: Page) -> list[dict[str, Any]]:
    """For each chart: its kind, and the numbers of its marks in all, drawn and outside."""
    charts: list[dict[str, Any]] = page.evaluate(_MARKS_OF_CHARTS)
    return charts


def poor_contrast(page: Page) -> list[str]:
    """Texts whose contrast is below 4.5 (WCAG 2, level AA)."""
    found: list[str] = page.evaluate(_POOR_CONTRAST)
    return found


def assert_quiet_and_fitting(page: Page, file: Path) -> None:
    """No error, no request but for the page itself, no scrolling to the side; charts drawn and legible."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))")
    assert page.errors == []
    assert page.requests == [file.as_uri()]
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    for chart in charts_of(page):
        assert chart["images"] == 1, chart
        # Letters of 12 and 13 px stay legible, and do not become a poster's.
        assert 0.75 <= chart["scale"] <= 1.35, chart
        assert chart["outside"] == 0, chart
        assert chart["marks"] > 0, chart


def assert_printable(page: Page, file: Path) -> None:
    """The page becomes a PDF file without complaint."""
    page.pdf(file)
    assert file.read_bytes().startswith(b"%PDF")
    assert page.errors == []


def assert_headings_and_captions(page: Page) -> None:
    """One title, no level left out, tables with captions, pictures with descriptions."""
    levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map((one) => +one.tagName[1])")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later - earlier <= 1 for earlier, later in itertools.pairwise(levels))
    assert page.evaluate("[...document.querySelectorAll('table')].every((one) => one.caption)")
    assert page.evaluate("document.querySelectorAll('svg[role=img]:not([aria-label])').length") == 0
