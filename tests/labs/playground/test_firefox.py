"""The playground in Firefox: as quiet, exact and usable as in chromium, where other tests look closer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from blklab import _core
from blklab.labs.playground.lessons import Lesson, load_lessons
from firefox import FirefoxPage, find_firefox, open_firefox
from playground_page import TWO_READERS, Playground, open_playground
from waiting import wait_until

pytestmark = pytest.mark.browser

_FIFO = """class Scheduler {
  constructor(queue) { this.held = []; }
  insert(request) { this.held.push(request); }
  dispatch() { return this.held.shift() ?? null; }
}"""


@pytest.fixture(scope="module")
def firefox() -> Iterator[FirefoxPage]:
    """A tab of a fresh Firefox."""
    program = find_firefox()
    if program is None:
        pytest.skip("there is no Firefox here (Debian: firefox-esr)")
    with open_firefox(program) as opened:
        yield opened


@pytest.fixture
def playground(firefox: FirefoxPage, file: Path) -> Playground:
    """The playground, opened anew without a link."""
    firefox.emulate(width=1280)
    return open_playground(firefox, file)


def test_it_asks_nothing_of_a_network(playground: Playground, firefox: FirefoxPage) -> None:
    playground.open(TWO_READERS)
    playground.play_until(50e6)
    foreign = [url for url in firefox.requests if not url.startswith(("file:", "about:", "data:", "blob:"))]
    assert foreign == []


@pytest.mark.parametrize("lesson", load_lessons(), ids=lambda lesson: lesson.id)
def test_statements_of_lessons_hold(playground: Playground, lesson: Lesson) -> None:
    playground.click(f"lesson-{lesson.id}")
    playground.evaluate("playground.player.play(false)")
    playground.click("lesson-check")
    kinds = playground.evaluate(
        "[...document.querySelectorAll('#lesson-statements li')].map((one) => one.className)"
    )
    assert kinds == ["holds"] * len(lesson.statements)


def test_answers_equal_those_of_the_native_program(playground: Playground) -> None:
    for lesson in range(int(playground.evaluate("playground.lessons.lessons.length"))):
        playground.click(playground.evaluate(f"'lesson-' + playground.lessons.lessons[{lesson}].id"))
        playground.evaluate("playground.player.play(false)")
        for lane in range(int(playground.evaluate("playground.player.lanes.length"))):
            asked = json.loads(playground.evaluate(f"JSON.stringify(playground.requestOf({lane}))"))
            text = json.dumps(asked | {"runtime_ns": 30_000_000, "timeline": False})
            assert playground.evaluate(f"playground.simulate({json.dumps(text)})") == _core.simulate(text)


def test_it_plays_goes_back_and_changes_while_it_runs(playground: Playground) -> None:
    playground.open(TWO_READERS.replace("deadline", "mq-deadline"))
    playground.play_until(300e6)
    before = playground.outcome()
    now_ns = playground.now_ns
    playground.go_to(100e6)
    assert playground.now_ns == 100e6
    playground.go_to(now_ns)
    assert playground.outcome() == before
    playground.set("scheduler-0", "bfq")
    assert playground.problem == ""
    playground.play_until(now_ns + 200e6)
    assert playground.outcome()["scheduler"] == "bfq"


@pytest.mark.parametrize("width", [390, 1280, 1920])
def test_it_fits(playground: Playground, firefox: FirefoxPage, width: int) -> None:
    firefox.emulate(width=width)
    playground.click("lesson-weights")
    playground.play_until(1e6)
    assert playground.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    painted = playground.evaluate(
        "[...document.querySelectorAll('canvas')].every((one) => one.width > 0 && one.getContext('2d')"
        ".getImageData(0, 0, one.width, one.height).data.some((value, at) => at % 4 === 3 && value > 250))"
    )
    assert painted


def _race(playground: Playground, code: str) -> str:
    playground.set("own-code", code)
    playground.set("own-seconds", 1)
    playground.click("own-race")
    wait_until(
        lambda: not playground.evaluate("document.getElementById('own-race').disabled"), "the race ends"
    )
    problem: str = playground.evaluate(
        "((one) => (one.hidden ? '' : one.textContent))(document.getElementById('own-problem'))"
    )
    return problem


def test_schedulers_of_one_s_own_race(playground: Playground) -> None:
    playground.open(TWO_READERS)
    assert _race(playground, _FIFO) == ""
    assert playground.evaluate("playground.own.results.map(({ name }) => name)") == [
        "yours",
        "deadline",
        "none",
        "mq-deadline",
        "kyber",
        "bfq",
    ]
    assert "line 4" in _race(playground, _FIFO.replace("this.held.shift", "this.helt.shift"))
    assert "SyntaxError" in _race(playground, "class Scheduler {")
    assert "there is no class Scheduler" in _race(playground, "const nothing = 1;")
    assert "a loop without an end" in _race(playground, _FIFO.replace("return", "for (;;); return"))
