"""Playing, stepping, going back: whatever the way to a moment, it is the same moment."""

from __future__ import annotations

import pytest

from playground_page import TWO_READERS, Playground

pytestmark = pytest.mark.browser

_SIDE_BY_SIDE = (
    "#device=hdd-7200&scheduler=bfq&scheduler=mq-deadline&task=one,randread,depth:4&task=two,write,depth:2"
)


def _view(playground: Playground, lane: int = 0) -> object:
    return playground.evaluate(f"playground.player.lanes[{lane}].view")


def test_a_step_ends_where_the_device_gets_its_next_request(playground: Playground) -> None:
    playground.open(TWO_READERS)
    # All tasks begin in one event.
    playground.click("step")
    first = playground.evaluate("playground.player.lanes[0].view.requests")
    assert first >= 1
    for expected in range(first + 1, first + 6):
        playground.click("step")
        assert playground.evaluate("playground.player.lanes[0].view.requests") == expected


def test_going_back_and_forth_comes_to_the_same_state(playground: Playground) -> None:
    playground.open(_SIDE_BY_SIDE)
    playground.play_until(200e6)
    end_ns = playground.now_ns
    views = [_view(playground, lane) for lane in (0, 1)]
    outcome = playground.outcome()
    playground.set("back", end_ns / 3)
    assert playground.now_ns == pytest.approx(end_ns / 3)
    assert _view(playground) != views[0]
    playground.go_to(end_ns)
    assert [_view(playground, lane) for lane in (0, 1)] == views
    assert playground.outcome() == outcome


def test_the_charts_forget_what_has_not_happened(playground: Playground) -> None:
    playground.open(TWO_READERS)
    playground.play_until(300e6)
    whole = playground.evaluate("playground.player.lanes[0].history.requests.rows.length")
    playground.go_to(30e6)
    rows = "playground.player.lanes[0].history.requests.rows"
    assert 0 < playground.evaluate(f"{rows}.length") < whole
    assert playground.evaluate(f"Math.max(...{rows}.map((row) => row.toNs))") <= 30e6


def test_lanes_stand_at_the_same_moment(playground: Playground) -> None:
    playground.open(_SIDE_BY_SIDE)
    playground.play_until(50e6)
    times = playground.evaluate("playground.player.lanes.map((lane) => lane.nowNs)")
    assert len(set(times)) == 1
    playground.click("step")
    times = playground.evaluate("playground.player.lanes.map((lane) => lane.nowNs)")
    assert len(set(times)) == 1


def test_moments_are_let_go_when_there_are_many(playground: Playground) -> None:
    playground.open(TWO_READERS)
    for _ in range(120):
        playground.click("step")
    assert playground.evaluate("playground.player.lanes[0].moments.length") <= 48
    assert playground.evaluate("playground.player.lanes[0].moments[0].ns") == 0


def test_play_pause_restart_and_speed(playground: Playground) -> None:
    playground.open(TWO_READERS)
    playground.click("play")
    assert playground.text("#play") == "Pause"
    playground.click("play")
    assert playground.text("#play") == "Play"
    playground.play_until(5e6)
    playground.click("restart")
    assert playground.now_ns == 0
    playground.set("speed", 18)
    assert playground.text("#speed-text") == "real time"
    playground.set("speed", 22)
    assert playground.text("#speed-text") == "as fast as it goes"
    playground.set("speed", 13)
    assert playground.text("#speed-text").startswith("50 ")


def test_a_simulation_ends_without_leaving_memory_behind(playground: Playground) -> None:
    """Set-ups that come and go use the same places again."""
    for _ in range(3):
        playground.open(_SIDE_BY_SIDE)
    size = "playground.simulator.exports.memory.buffer.byteLength"
    before = playground.evaluate(size)
    for _ in range(30):
        playground.open(_SIDE_BY_SIDE)
        playground.play_until(5e6)
    assert playground.evaluate(size) <= before * 1.5


_FRAMES = """(() => {
  const { player } = playground;
  for (let frame = 1; frame <= 60; frame += 1) {
    for (const lane of player.lanes) { lane.advance(frame * 5e5); lane.look(); }
    player.drawn(16);
  }
  return player.lanes[0].view.requests;
})()"""
"""Sixty frames, each with all pictures; `benches/playground.py` measures what they cost."""


@pytest.mark.parametrize(
    ("disk", "scheduler"),
    [
        *(("hdd-7200", name) for name in ("none", "mq-deadline", "kyber", "bfq", "deadline", "cfq")),
        *(("nvme-tlc", name) for name in ("none", "mq-deadline", "kyber", "bfq")),
    ],
)
def test_frames_are_drawn_on_every_disk(playground: Playground, disk: str, scheduler: str) -> None:
    playground.open(f"#device={disk}&scheduler={scheduler}&task=one,randread,depth:32&task=two,write,depth:8")
    assert playground.evaluate(_FRAMES) > 0
