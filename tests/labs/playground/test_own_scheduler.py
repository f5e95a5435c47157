"""Schedulers written in the page: examples, races, broken rules, and code that never ends."""

from __future__ import annotations

import json
from typing import Any

import pytest

import blklab
from blklab.labs.playground.page import EXAMPLE_SCHEDULERS
from chromium import Page
from page_checks import poor_contrast
from playground_page import TWO_READERS, Playground, open_playground
from waiting import wait_until

pytestmark = pytest.mark.browser

_DEEP = "#device=hdd-7200&scheduler=mq-deadline&task=many,randread,depth:128"
"""More requests than the drive queues itself, so that the scheduler holds some."""

BUILT_IN = {"none", "mq-deadline", "kyber", "bfq"}

_HELD = (
    "class Scheduler { constructor(queue) { this.queue = queue; this.held = []; } "
    "insert(request) { this.held.push(request); } "
)
_FIFO = _HELD + "dispatch() { return this.held.shift() ?? null; } }"

BROKEN = {
    "twice": (_HELD + "dispatch() { return this.held[0] ?? null; } }", "dispatched request 1 twice"),
    "stalls": (_HELD + "dispatch() { return null; } }", "no timer is set"),
    "starves": (_HELD + "dispatch() { return this.held.pop() ?? null; } }", "starve"),
    "invents": (_HELD + "dispatch() { return { number: 7e6 }; } }", "was given only"),
    "returns a word": (_HELD + "dispatch() { return 'next'; } }", "not a request or null"),
    "throws": (_HELD + "\ndispatch() {\n  return this.helt.shift();\n} }", "line 3: TypeError"),
    "lacks a method": ("class Scheduler { insert(request) {} }", "no method dispatch()"),
    "is no class": ("const held = [];", "there is no class Scheduler"),
    "is no program": ("class Scheduler {\n  insert(request) {\n", "SyntaxError"),
    "never ends": (_HELD + "dispatch() { for (;;); } }", "a loop without an end"),
    "never ends to begin with": ("for (;;);", "a loop without an end"),
    "sets timers for ever": (
        _HELD + "dispatch() { this.queue.timer_at(this.queue.now_ns); return null; } timer() {} }",
        "for ever",
    ),
}
"""Schedulers that break a rule, and a part of what the page says."""


def _race(playground: Playground, code: str | None, *, seconds: int = 10) -> None:
    if code is not None:
        playground.set("own-code", code)
    playground.set("own-seconds", seconds)
    playground.click("own-race")
    wait_until(
        lambda: not playground.evaluate("document.getElementById('own-race').disabled"),
        "the race ends",
    )


def _results(playground: Playground) -> dict[str, Any]:
    text = playground.evaluate(
        "JSON.stringify(playground.own.results.map(({ name, outcome }) => [name, outcome]))"
    )
    return dict(json.loads(text))


def _problem(playground: Playground) -> str:
    text: str = playground.evaluate(
        "((one) => (one.hidden ? '' : one.textContent))(document.getElementById('own-problem'))"
    )
    return text


@pytest.mark.parametrize("example", EXAMPLE_SCHEDULERS)
def test_an_example_races_the_kernel_s_schedulers(playground: Playground, example: str) -> None:
    playground.open(TWO_READERS)
    playground.set("own-example", example)
    _race(playground, None)
    assert _problem(playground) == ""
    assert _results(playground).keys() == {"yours", "deadline"} | BUILT_IN
    rows = playground.evaluate("document.querySelectorAll('.race tbody tr').length")
    assert rows == 6
    assert playground.text(".race tr.yours th") == "yours"


def test_fair_shares_are_equal_and_keep_the_disk_s_speed(playground: Playground) -> None:
    playground.click("lesson-ionice")
    playground.evaluate("playground.player.play(false)")
    playground.set("own-example", "fair_shares")
    _race(playground, None)
    assert _problem(playground) == ""
    rates = {
        name: [int(job["directions"][0]["bytes"]) for job in outcome["jobs"]]
        for name, outcome in _results(playground).items()
    }
    assert len(rates["yours"]) == 3
    assert max(rates["yours"]) < 1.1 * min(rates["yours"])
    assert sum(rates["yours"]) > 10 * sum(rates["deadline"]), "each request of another task costs a seek"


def test_a_race_repeats_to_the_bit(playground: Playground) -> None:
    playground.open(TWO_READERS)
    code = _HELD + "dispatch() { return this.held.splice(Math.random() * this.held.length, 1)[0] ?? null; } }"
    _race(playground, code, seconds=2)
    first = _results(playground)
    _race(playground, code, seconds=2)
    assert _results(playground) == first
    assert _problem(playground) == ""


def test_the_others_run_as_they_do_elsewhere(playground: Playground) -> None:
    playground.open(TWO_READERS)
    _race(playground, _FIFO, seconds=2)
    request = playground.evaluate(
        "JSON.stringify({ ...playground.requestOf(0), timeline: false, runtime_ns: 2e9 })"
    )
    alone = json.loads(playground.evaluate(f"playground.simulate({json.dumps(request)})"))
    assert _results(playground)["deadline"]["jobs"] == alone["jobs"]


def test_the_same_class_in_python_gives_the_same_bits(playground: Playground) -> None:
    class Elevator:
        def __init__(self, queue: blklab.schedulers.Queue) -> None:
            self.sweep: list[blklab.schedulers.Request] = []
            self.next: list[blklab.schedulers.Request] = []

        def insert(self, request: blklab.schedulers.Request) -> None:
            self.next.append(request)

        def dispatch(self) -> blklab.schedulers.Request | None:
            if not self.sweep:
                self.sweep, self.next = sorted(self.next, key=lambda one: one.sector), []
            return self.sweep.pop(0) if self.sweep else None

    playground.open(_DEEP)
    playground.set("own-example", "elevator")
    _race(playground, None, seconds=3)
    request = json.loads(playground.evaluate("JSON.stringify(playground.requestOf(0))"))
    request |= {"timeline": False, "runtime_ns": 3_000_000_000, "scheduler": "yours"}
    blklab.schedulers.register("yours", Elevator)
    try:
        answer = json.loads(blklab._core.simulate(json.dumps(request)))
    finally:
        blklab.schedulers.unregister("yours")
    assert _results(playground)["yours"]["jobs"] == answer["jobs"]


@pytest.mark.parametrize("name", BROKEN)
def test_a_scheduler_that_breaks_a_rule_is_told_which(playground: Playground, name: str) -> None:
    code, part = BROKEN[name]
    playground.open(_DEEP)
    _race(playground, code)
    assert part in _problem(playground)
    assert "yours" not in _results(playground)
    # The page lives, and so does the code.
    playground.play_until(50e6)
    assert playground.evaluate("document.getElementById('own-code').value") == code


def test_a_race_can_be_stopped(playground: Playground) -> None:
    playground.open(TWO_READERS)
    playground.set("own-code", _HELD + "dispatch() { for (;;); } }")
    playground.click("own-race")
    playground.click("own-stop")
    assert playground.text("#own-status") == "Stopped."
    assert not playground.evaluate("document.getElementById('own-race').disabled")
    _race(playground, _FIFO, seconds=1)
    assert "yours" in _results(playground)


def test_code_cannot_reach_the_page_or_a_network(playground: Playground) -> None:
    code = _HELD + "dispatch() { document.title = 'mine'; return this.held.shift() ?? null; } }"
    playground.open(TWO_READERS)
    _race(playground, code, seconds=1)
    assert "document is not defined" in _problem(playground)
    playground.set(
        "own-code",
        _HELD
        + "dispatch() { const ask = new XMLHttpRequest(); ask.open('GET', 'http://localhost:9/', false);"
        " ask.send(); return this.held.shift() ?? null; } }",
    )
    playground.click("own-race")
    page = playground.page
    wait_until(lambda: not page.evaluate("document.getElementById('own-race').disabled"), "the race ends")
    assert "NetworkError" in page.evaluate("document.getElementById('own-problem').textContent")
    assert all("Content Security Policy" in error for error in page.errors)
    page.errors.clear()


def test_code_outlives_the_page(playground: Playground) -> None:
    playground.set("own-code", _FIFO)
    again = open_playground(playground.page, playground.file)
    assert again.evaluate("document.getElementById('own-code').value") == _FIFO


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_results_fit_and_read_well(playground: Playground, page: Page, width: int, dark: bool) -> None:
    page.emulate(width=width, dark=dark)
    playground.open(TWO_READERS)
    _race(playground, _FIFO, seconds=1)
    assert _results(playground).keys() == {"yours", "deadline"} | BUILT_IN
    assert playground.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert poor_contrast(page) == []
    _race(playground, BROKEN["throws"][0], seconds=1)
    assert playground.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert poor_contrast(page) == []
