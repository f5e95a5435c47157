"""Every control of the page does what it says; none is left out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from playground_page import TWO_READERS, Playground

pytestmark = pytest.mark.browser

_TASK = "#device=hdd-7200&scheduler=bfq&task=one,randread,class:be&task=two,write&group=fast,300"

FIELDS = {
    "device": ("device", "ssd-sata", "device=ssd-sata"),
    "driveQueue": ("drive-queue", 4, "drive-queue=4"),
    "scheduler": ("scheduler-0", "cfq", "scheduler=cfq"),
    "tunable": ("tunable-0-slice_idle", 3, "scheduler=bfq,slice_idle:3"),
    "task.pattern": ("task-0-pattern", "randwrite", "one,randwrite"),
    "task.block": ("task-0-block", "64k", "block:64k"),
    "task.processes": ("task-0-processes", 3, "processes:3"),
    "task.depth": ("task-0-depth", 16, "depth:16"),
    "task.buffered": ("task-0-buffered", "true", "buffered:1"),
    "task.fsync": ("task-1-fsync", 8, "fsync:8"),
    "task.think": ("task-0-think", 250, "think:250"),
    "task.begin": ("task-0-begin", 40, "begin:40"),
    "task.class": ("task-0-class", "rt", "class:rt"),
    "task.level": ("task-0-level", 1, "level:1"),
    "task.group": ("task-0-group", "fast", "group:fast"),
    "task.file": ("task-0-file", "64m", "file:64m"),
    "group.weight": ("weight-0", 700, "group=fast,700"),
    "sharing": ("sharing", "ioband", "sharing=ioband"),
    "machine": ("machine", "ordinary", "machine=ordinary"),
    "dispatchWait": ("dispatch-wait", 20, "dispatch-wait=20"),
    "seed": ("seed", 11, "seed=11"),
}
"""Controls that set one field: the element, a value, and how the link shows it."""

BUTTONS = {
    "beside": ("#beside", "scheduler=bfq&scheduler=none"),
    "task.add": ("#add-task", "task=task3,randread"),
    "task.remove": ("[data-control='task.remove']", None),
    "group.add": ("#add-group", "group=group2,100"),
    "group.remove": ("[data-control='group.remove']", None),
}

ELSEWHERE = {
    "test_lessons.py": {
        "lesson": "lesson-{",
        "lesson.check": "lesson-check",
        "lesson.next": "lesson-next",
        "lesson.close": "lesson-close",
    },
    "test_exported_jobs.py": {
        "export.target": "export-target",
        "export.size": "export-size",
        "export.save": "save-jobs",
        "export.line": "copy-line",
        "export.jobs": "copy-jobs",
        "link": "copy-link",
    },
    "test_own_scheduler.py": {
        "own.example": "own-example",
        "own.seconds": "own-seconds",
        "own.code": "own-code",
        "own.race": "own-race",
        "own.stop": "own-stop",
    },
    "test_playback.py": {
        "play": "play",
        "step": "step",
        "restart": "restart",
        "speed": "speed",
        "back": "back",
    },
}
"""Controls that other files of tests use, and the element's id there."""

SET_UPS = (
    _TASK,
    "#device=nvme-tlc&scheduler=none&scheduler=kyber&task=one,randread&machine=ordinary&dispatch-wait=5",
    "#device=hdd-7200&scheduler=cfq&scheduler=anticipatory&task=one,write,buffered:1&group=a,10&sharing=ioband",
)
"""Set-ups that bring out every control there is."""


def test_every_control_is_used_by_a_test(playground: Playground) -> None:
    names: set[str] = set()
    for link in SET_UPS:
        playground.open(link)
        names |= set(
            playground.evaluate(
                "[...document.querySelectorAll('[data-control]')].map((one) => one.dataset.control)"
            )
        )
        # Nothing that can be operated is without a name.
        operable = "input,select,textarea,button,[contenteditable],[role=button],[role=slider]"
        unnamed = f":is({operable}):not([data-control])"
        assert playground.evaluate(f"document.querySelectorAll('{unnamed}').length") == 0
    elsewhere: set[str] = set().union(*ELSEWHERE.values())
    assert names == FIELDS.keys() | BUTTONS.keys() | elsewhere


@pytest.mark.parametrize("file", ELSEWHERE)
def test_a_control_named_here_is_operated_there(file: str) -> None:
    text = (Path(__file__).parent / file).read_text("utf-8")
    for control, identity in ELSEWHERE[file].items():
        operated = re.search(
            rf"""(click|set|_press)\(\s*f?["']{re.escape(identity)}|["']#?{re.escape(identity)}["']""", text
        )
        assert operated, f"{file} does not use {control}"


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_reaches_the_link_and_the_simulator(playground: Playground, name: str) -> None:
    identity, value, part = FIELDS[name]
    playground.open(_TASK)
    before = playground.evaluate("JSON.stringify(playground.requestOf(0))")
    playground.set(identity, value)
    assert playground.problem == ""
    assert part in playground.link
    assert playground.evaluate("JSON.stringify(playground.requestOf(0))") != before
    playground.play_until(2e6)


@pytest.mark.parametrize("name", BUTTONS)
def test_a_button_changes_the_set_up(playground: Playground, name: str) -> None:
    selector, part = BUTTONS[name]
    playground.open(_TASK)
    before = playground.link
    playground.evaluate(f'document.querySelector("{selector}").click()')
    assert playground.problem == ""
    assert playground.link != before
    if part is None:
        assert len(playground.link) < len(before)
    else:
        assert part in playground.link
    playground.play_until(2e6)


def test_a_second_scheduler_goes_again(playground: Playground) -> None:
    playground.open(TWO_READERS)
    playground.click("beside")
    assert playground.evaluate("playground.player.lanes.length") == 2
    assert playground.evaluate("document.querySelectorAll('.lane').length") == 2
    playground.click("beside")
    assert playground.link == TWO_READERS


@pytest.mark.parametrize("value", ["0", "-3", "1e9", ""])
def test_a_number_out_of_bounds_is_brought_within(playground: Playground, value: str) -> None:
    playground.open(TWO_READERS)
    playground.set("task-0-depth", value)
    assert playground.problem == ""
    assert 1 <= playground.evaluate("playground.setup.tasks[0].depth") <= 128


def test_a_tunable_out_of_range_is_refused_with_the_reason(playground: Playground) -> None:
    playground.open(_TASK)
    playground.set("tunable-0-low_latency", "7")
    assert "low_latency" in playground.problem
    assert playground.link == _TASK
    playground.play_until(2e6)


def test_a_device_without_a_picture_of_its_own_runs(playground: Playground) -> None:
    """A network disk takes any scheduler; the page runs it or says why not."""
    playground.open("#device=virtio-network&scheduler=bfq&task=one,randrw,fsync:2,buffered:1")
    playground.play_until(2e6)
    assert playground.problem == ""
