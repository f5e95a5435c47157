"""Changes while it runs: made at once, kept in the link, and made again after going back."""

from __future__ import annotations

import pytest

from playground_page import Playground

pytestmark = pytest.mark.browser

_TWO = "#device=hdd-7200&scheduler=cfq&task=one,read,block:64k,class:be&task=two,read,block:64k,class:be"
_GROUPS = (
    "#device=hdd-7200&scheduler=bfq,low_latency:0&task=one,read,block:64k,group:a&"
    "task=two,read,block:64k,group:b&group=a,100&group=b,100"
)
_WRITER = "#device=hdd-7200&drive-queue=1&scheduler=noop&task=reader,randread&task=writer,randwrite,depth:64"


def _bytes_between(playground: Playground, from_ns: float, to_ns: float, lane: int = 0) -> list[float]:
    """Bytes of each task between two moments, from the simulator's records."""

    def moved() -> list[float]:
        jobs = playground.outcome(lane)["jobs"]
        return [sum(one["bytes"] for one in job["directions"]) for job in jobs]

    playground.go_to(from_ns)
    before = moved()
    playground.go_to(to_ns)
    return [late - early for late, early in zip(moved(), before, strict=True)]


def test_ionice_while_it_runs_changes_the_shares(playground: Playground) -> None:
    playground.open(_TWO)
    one, two = _bytes_between(playground, 0, 4e9)
    assert 0.6 < one / two < 1.6
    playground.set("task-0-level", 0)
    playground.set("task-1-level", 7)
    assert playground.now_ns == 4e9, "it continued"
    one, two = _bytes_between(playground, 5e9, 10e9)
    assert one > 3 * two
    assert "one,read,block:64k,class:be,level:0" in playground.link


def test_a_weight_while_it_runs_changes_the_shares(playground: Playground) -> None:
    playground.open(_GROUPS)
    one, two = _bytes_between(playground, 0, 4e9)
    assert 0.7 < one / two < 1.4
    playground.set("weight-0", 400)
    assert playground.now_ns == 4e9
    one, two = _bytes_between(playground, 6e9, 14e9)
    assert 3 < one / two < 5


def test_a_scheduler_is_switched_while_it_runs(playground: Playground) -> None:
    playground.open(_WRITER)
    reader, _ = _bytes_between(playground, 0, 3e9)
    playground.set("scheduler-0", "deadline")
    assert playground.now_ns == 3e9
    again, _ = _bytes_between(playground, 4e9, 7e9)
    assert again > 2 * reader
    assert playground.evaluate("playground.player.lanes[0].view.scheduler") == "deadline"
    assert playground.text(".lane h2") == "deadline on hdd-7200"


def test_a_tunable_while_it_runs(playground: Playground) -> None:
    playground.open(_GROUPS)
    playground.go_to(1e9)
    playground.set("tunable-0-slice_idle", 0)
    assert playground.now_ns == 1e9
    playground.go_to(2e9)
    assert playground.outcome()["tunables"]["slice_idle"] == 0
    playground.set("tunable-0-slice_idle", "")
    playground.go_to(3e9)
    assert playground.outcome()["tunables"]["slice_idle"] == 8


def test_going_back_and_forth_makes_the_changes_again(playground: Playground) -> None:
    playground.open(_TWO)
    playground.play_until(1e9)
    playground.set("task-1-class", "idle")
    changed_ns = playground.now_ns
    playground.go_to(changed_ns + 2e9)
    outcome = playground.outcome()
    playground.go_to(changed_ns / 2)
    playground.go_to(changed_ns + 2e9)
    assert playground.outcome() == outcome
    # Without the change it would be another run.
    playground.evaluate("playground.player.lanes[0].changes = []; playground.player.lanes[0].made = 0; 0")
    playground.evaluate("for (const one of playground.player.lanes[0].moments) one.made = 0")
    playground.go_to(changed_ns / 2)
    playground.go_to(changed_ns + 2e9)
    assert playground.outcome() != outcome


def test_steps_stop_at_a_change_made_before(playground: Playground) -> None:
    playground.open(_TWO)
    playground.go_to(500e6)
    playground.set("task-1-class", "idle")
    playground.go_to(900e6)
    outcome = playground.outcome()
    playground.go_to(480e6)
    while playground.now_ns < 600e6:
        playground.click("step")
    assert playground.evaluate("playground.player.lanes[0].made") == 1
    playground.go_to(900e6)
    assert playground.outcome() == outcome


def test_an_impossible_change_is_refused_and_the_run_continues(playground: Playground) -> None:
    playground.open(_GROUPS)
    playground.go_to(1e9)
    playground.set("tunable-0-timeout_sync", "soon")
    assert "timeout_sync" in playground.problem
    assert playground.link == _GROUPS
    assert playground.evaluate("document.getElementById('tunable-0-timeout_sync').value") == "125"
    playground.play_until(1.2e9)


def test_anything_else_starts_anew(playground: Playground) -> None:
    playground.open(_TWO)
    playground.go_to(1e9)
    playground.set("task-0-block", "4k")
    assert playground.now_ns == 0
