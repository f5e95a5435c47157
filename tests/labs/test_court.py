"""The measurement of the court (benches/court): one that was interrupted continues where it stopped."""

from __future__ import annotations

import importlib
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

COURT = Path(__file__).parents[2] / "benches" / "court"
DOCUMENT = {
    "outcome": "slower",
    "questions": 4,
    "identical": 3,
    "same_bytes": False,
    "answers": [
        {
            "disk": "ssd-sata",
            "scheduler": "bfq",
            "load": "mixed",
            "job": "mixed",
            "metric": "iops",
            "outcome": outcome,
            "speed": speed,
        }
        for outcome, speed in (("slower", 0.9), ("undecided", 0.8), ("slower", 0.5))
    ],
}
SCOPE = ("--disk", "ssd-sata")
PATCH = "--- a/block/{0}\n+++ b/block/{0}\n@@ -1 +1 @@\n-int a;\n+int b;\n"


@pytest.fixture(name="judging")
def judging_of_bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(COURT))
    judging = importlib.import_module("judging")
    record = SimpleNamespace(source="debian")
    monkeypatch.setattr(judging, "find", lambda _: SimpleNamespace(record=record))
    return judging


@pytest.fixture(name="commands")
def recorded_commands(judging: Any, monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """The commands that the bench gives, each of which succeeds."""
    commands: list[Sequence[str]] = []

    def answer(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
        commands.append(arguments)
        return subprocess.CompletedProcess(arguments, 0, json.dumps(DOCUMENT), "")

    monkeypatch.setattr(judging, "_blklab", answer)
    return commands


def test_what_a_file_of_results_has_is_not_judged_again(
    judging: Any, commands: list[Sequence[str]], tmp_path: Path
) -> None:
    results = tmp_path / "results.jsonl"
    patches = [(name, tmp_path / f"{name}.patch", SCOPE) for name in ("first", "second")]
    judging.judge_all(patches[:1], "stock", results)
    before = len(commands)
    answers = judging.judge_all(patches, "stock", results)
    assert [answer.name for answer in answers] == ["first", "second"]
    assert {name for command in commands[before:] for name in command if "court-" in name} == {
        "court-second",
        "stock,court-second",
    }
    assert judging.judge_all(patches, "stock", results) == answers
    assert answers[0].detected
    assert answers[0].slower == ("ssd-sata/bfq/mixed mixed iops x0.50", "ssd-sata/bfq/mixed mixed iops x0.90")


def test_other_questions_are_asked_anew(judging: Any, commands: list[Sequence[str]], tmp_path: Path) -> None:
    """Results near the subject of a regression must not stand for those of all questions."""
    results = tmp_path / "results.jsonl"
    for scope in (SCOPE, ()):
        judging.judge_all([("first", tmp_path / "first.patch", scope)], "stock", results)
    asked = [command[3:-3] for command in commands if command[0] == "judge"]
    assert asked == [list(SCOPE), []]


def test_time_of_processors_is_that_of_programs_started(judging: Any, tmp_path: Path) -> None:
    before = judging._processor_seconds()
    subprocess.run(["sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"], check=True)
    assert judging._processor_seconds() > before
    line = judging.processor_minutes(
        [_judged(judging, build=30, judge=90), _judged(judging, build=60, judge=0)]
    )
    assert line == "Processor time: 1.5 min of builds, 1.5 min of judgements"


@pytest.mark.parametrize(
    ("files", "scheduler"),
    [
        (("bfq-iosched.c", "bfq-wf2q.c"), "bfq"),
        (("kyber-iosched.c",), "kyber"),
        (("bfq-iosched.c", "blk-mq.c"), None),
        (("bfq-iosched.c", "kyber-iosched.c"), None),
        (("blk-mq.c",), None),
    ],
)
def test_a_patch_to_one_scheduler_is_asked_about_under_it(
    judging: Any, tmp_path: Path, files: Sequence[str], scheduler: str | None
) -> None:
    patch = tmp_path / "some.patch"
    patch.write_text("".join(PATCH.format(name) for name in files))
    assert judging.only_scheduler(patch) == scheduler


def _judged(judging: Any, *, build: float, judge: float) -> Any:
    return judging.Judged("some", "all", "same", 1, 1, (), (), 1.0, build, judge)


def test_the_order_of_a_plug_counts_where_the_disk_does_not_sort(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk with one tag gets the requests of a plug one by one, and one with 32 sorts them."""
    monkeypatch.syspath_prepend(str(COURT))
    ratios = importlib.import_module("plug_order").ratios
    assert ratios("hdd-7200,queue_depth=1", "batches", 1) == [1]
    assert ratios("hdd-7200", "strides", 1) == [pytest.approx(1, abs=0.02)]
    (in_order,) = ratios("hdd-7200,starvation_limit=1ms", "strides", 1)
    assert in_order < 0.2
