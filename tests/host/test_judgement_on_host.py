"""The questions of a judgement on a loop device: two stock schedulers stand for original and change."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from blklab.cli import run
from blklab.errors import ExitCode, RefusedError, UsageError
from blklab.labs.judgement.answers import JudgementAnswer
from blklab.labs.judgement.on_host import HostJudgement, host_page, judge_on_host
from blklab.labs.judgement.questions import JudgementQuestion
from blklab.spec.schedulers import parse_scheduler_choices


class Observer:
    """Notes the progress."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []

    def progressed(self, _what: str, done: int, expected: int) -> None:
        self.seen.append((done, expected))


@pytest.mark.root
def test_questions_are_asked_on_a_loop_device(disk_folder: Path) -> None:
    observer = Observer()
    arms = parse_scheduler_choices("kyber,mq-deadline,kyber:read_lat_nsec=2000000")
    loads = ("random-readers", "log-and-batch")
    target = f"loop:512m,dir={disk_folder}"
    judgement = judge_on_host(target, arms, observer, loads, rounds=2, runtime_ns=200_000_000)
    assert observer.seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert judgement.asked == loads
    assert {(answer.question.load, answer.job) for answer in judgement.answers} == {
        ("random-readers", "reader"),
        ("log-and-batch", "log"),
        ("log-and-batch", "batch"),
    }
    assert judgement.placebo
    assert all(answer.rounds == 2 for answer in judgement.answers)
    assert "judged mq-deadline" in host_page(judgement)


def test_only_scratch_devices_and_loads_without_a_guest() -> None:
    arms = parse_scheduler_choices("kyber,mq-deadline")
    for target in ("/dev/vda", "/srv", "sim:nvme-tlc"):
        with pytest.raises(RefusedError, match="not a scratch device"):
            judge_on_host(target, arms, Observer())
    for load, reason in (("groups", "io.cost"), ("pipes", "virtual time")):
        with pytest.raises(UsageError, match=reason):
            judge_on_host("loop:1g", arms, Observer(), [load])


def test_a_copy_that_differs_withholds_the_verdict() -> None:
    question = JudgementQuestion("loop:1g", "kyber", "streams")

    def answer(outcome: str) -> JudgementAnswer:
        return JudgementAnswer(question, "stream", "iops", outcome, 0.5, (0.4, 0.6), 8)  # type: ignore[arg-type]

    def judged(placebo: str) -> HostJudgement:
        found = (answer("slower"),), (answer(placebo),)
        return HostJudgement("loop:1g", "kyber", "kyber@mine", 10**9, 8, ("streams",), *found)

    assert judged("slower").withheld
    assert host_page(judged("slower")).startswith("No verdict: an unchanged copy differs")
    assert not judged("same").withheld and judged("same").worse
    assert host_page(judged("same")).startswith("Slower for somebody")


def test_the_command_refuses_what_is_for_guests(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["kernel", "judge", "--module", "mine", "--disk", "ssd-sata"]) == ExitCode.USAGE
    assert "--disk is for guests" in capsys.readouterr().err
    assert run(["kernel", "judge", "--kernel", "stock,mine", "--on", "loop:1g"]) == ExitCode.USAGE
    assert "--on names the device for a module" in capsys.readouterr().err
    assert run(["kernel", "judge", "--module", "no-such"]) == ExitCode.USAGE
    assert "there is no module no-such" in capsys.readouterr().err
    new = SimpleNamespace(record=SimpleNamespace(is_new=True, scheduler="adios"))
    monkeypatch.setattr("blklab.cli.judge_module.find_module", lambda _: new)
    assert run(["kernel", "judge", "--module", "adios2"]) == ExitCode.REFUSED
    assert "a scheduler of its own" in capsys.readouterr().err
