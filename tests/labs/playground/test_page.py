"""The page in a real browser: quiet, fitting, readable, labelled, quick to start, and small."""

from __future__ import annotations

from pathlib import Path

import pytest

from chromium import Page
from page_checks import assert_headings_and_captions, poor_contrast
from playground_page import TWO_READERS, Playground, open_playground
from waiting import wait_until

pytestmark = pytest.mark.browser

MOST_BYTES = 1_500_000

_UNLABELLED = """
[...document.querySelectorAll('input, select, textarea, button, canvas, summary, [role=region], [role=img]')]
  .filter((one) => one.getClientRects().length)
  .filter((one) => {
    const label = one.getAttribute('aria-label') ?? one.labels?.[0]?.textContent ?? one.textContent;
    return !label.trim();
  })
  .map((one) => one.outerHTML.slice(0, 80))
"""

_SMALL_TARGETS = """
[...document.querySelectorAll('button, select, input')]
  .filter((one) => one.getClientRects().length)
  .filter((one) => one.getBoundingClientRect().height < 22)
  .filter((one) => one.type !== 'range')
  .map((one) => one.id || one.textContent)
"""

_DUPLICATES = """
(() => {
  const ids = [...document.querySelectorAll('[id]')].map((one) => one.id);
  return ids.filter((one, index) => ids.indexOf(one) !== index);
})()
"""


def test_the_file_is_small(html: str) -> None:
    assert len(html.encode()) < MOST_BYTES


def test_it_asks_nothing_of_a_network(page: Page, file: Path) -> None:
    playground = open_playground(page, file)
    playground.play_until(50e6)
    playground.click("lesson-check")
    assert page.requests == [file.as_uri()]
    assert page.errors == []
    text = file.read_text("utf-8")
    assert "https://" not in text
    assert "http://" not in text


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280, 1920])
@pytest.mark.parametrize("lesson", ["deadlines", "weights", "writers", "nvme"])
def test_it_fits_and_reads_well(page: Page, file: Path, width: int, dark: bool, lesson: str) -> None:
    page.emulate(width=width, dark=dark)
    playground = open_playground(page, file)
    playground.click(f"lesson-{lesson}")
    playground.play_until(1e6)
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert poor_contrast(page) == []
    assert page.evaluate(_UNLABELLED) == []
    assert page.evaluate(_SMALL_TARGETS) == []
    assert page.evaluate(_DUPLICATES) == []
    assert_headings_and_captions(page)
    assert page.errors == []


def test_every_picture_shows_something(playground: Playground) -> None:
    playground.open(TWO_READERS)
    playground.play_until(300e6)
    colours = playground.evaluate(
        """[...document.querySelectorAll('canvas')].map((one) => {
          const { data } = one.getContext('2d').getImageData(0, 0, one.width, one.height);
          const seen = new Set();
          for (let at = 0; at < data.length; at += 4) if (data[at + 3] > 250) {
            seen.add(data[at] << 16 | data[at + 1] << 8 | data[at + 2]);
          }
          return seen.size;
        })"""
    )
    assert len(colours) == 6
    assert all(count > 4 for count in colours), colours


def test_the_device_and_the_tasks_are_told_in_words(playground: Playground) -> None:
    playground.open(TWO_READERS)
    playground.play_until(300e6)
    label = playground.evaluate("document.querySelector('canvas.stage').getAttribute('aria-label')")
    assert "the arm" in label or "transfers" in label or "on track" in label, label
    assert "with deadline" in playground.evaluate(
        "document.querySelector('canvas.queue').getAttribute('aria-label')"
    )
    cells = "[...row.cells].map((cell) => cell.textContent)"
    rows = playground.evaluate(f"[...document.querySelectorAll('tbody tr')].map((row) => {cells})")
    assert [row[0] for row in rows] == ["near", "far"]
    assert all("/s" in row[2] and "s" in row[3] for row in rows), rows


def test_the_keyboard_plays(page: Page, playground: Playground) -> None:
    def press(key: str, code: str) -> None:
        for kind in ("keyDown", "keyUp"):
            page.command("Input.dispatchKeyEvent", type=kind, key=key, code=code, text=key)

    playground.open(TWO_READERS)
    playground.evaluate("document.activeElement?.blur()")
    press(" ", "Space")
    assert playground.evaluate("playground.player.playing")
    press(" ", "Space")
    assert not playground.evaluate("playground.player.playing")
    # The first requests begin at time 0, so that time may stand still in a step.
    requests = "playground.player.lanes[0].view.requests"
    before = playground.evaluate(requests)
    press(".", "Period")
    assert playground.evaluate(requests) > before
    speed = playground.evaluate("playground.player.speed")
    press("+", "Equal")
    assert playground.evaluate("playground.player.speed") > speed
    press("-", "Minus")
    assert playground.evaluate("playground.player.speed") == speed
    press("r", "KeyR")
    assert playground.now_ns == 0


def test_colours_follow_the_scheme_while_the_page_is_open(page: Page, playground: Playground) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    page.emulate(width=1280, dark=False)
    light = playground.evaluate(colour)
    page.emulate(width=1280, dark=True)
    wait_until(lambda: playground.evaluate(colour) != light, "the page is dark")
