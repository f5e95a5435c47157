"""Progress on standard error: a line for each run, and for each stretch of slots."""

from __future__ import annotations

import pytest

from blklab.cli import progress_line
from blklab.cli.progress import ProgressDisplay, _time_left, open_questions, plan_text, shortage_text
from blklab.execution.blocks import Progress
from blklab.execution.outlook import Outlook, Shortage
from blklab.execution.racing import OpenQuestion
from blklab.quantities.sample_units import SampleUnit
from blklab.records.samples import RunSample
from blklab.spec.plan import CellKey

ROUNDS = SampleUnit(250_000_000)


def _failed(scheduler: str, *, block: int, seed: int = 7) -> RunSample:
    key = CellKey(block=block, sequence=0, position=0, workload="reads", scheduler=scheduler, seed=seed)
    return RunSample(cell=key, status="failed", error="no space", started_at="", elapsed_ns=1, jobs=[])


def _stretch(number: int) -> Progress:
    return Progress(32 * number, None, 8 * number, None, "reads, none, bfq in turns", [], ROUNDS)


def test_a_line_in_a_log_for_each_stretch(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_line, "LOG_INTERVAL_NS", 0)
    with ProgressDisplay(quiet=False) as display:
        for number in (0, 1):
            display.progressed(_stretch(number))
        display.progressed(Progress(64, None, 0, None, "log under none"))
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["round 1, slot 1", "round 9, slot 33", "block 1, run 65"]


def test_slots_that_fail_together_are_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressDisplay(quiet=True) as display:
        display.progressed(_stretch(0))
        for block in range(8):
            for scheduler in ("none", "bfq"):
                display.measured(_failed(scheduler, block=block))
        assert capsys.readouterr().err.count("failed: no space") == 1
        display.progressed(_stretch(1))
        display.measured(_failed("none", block=8))
        assert capsys.readouterr().err.count("failed: no space") == 1


def test_every_run_that_fails_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressDisplay(quiet=True) as display:
        display.progressed(Progress(0, None, 0, None, "reads under none"))
        for scheduler in ("none", "bfq"):
            display.measured(_failed(scheduler, block=0))
    assert capsys.readouterr().err.count("failed: no space") == 2


def test_open_questions_of_slots_are_told_in_rounds_and_time() -> None:
    questions = [
        OpenQuestion("reads", ["none", "kyber"], 300, ROUNDS),
        OpenQuestion("writes", ["none", "bfq"], 3),
        OpenQuestion("mixed", ["a", "b"], 10**6, ROUNDS),
    ]
    assert open_questions(questions) == (
        "reads (none, kyber; about 300 more rounds (3 min of load)), "
        "writes (none, bfq; about 3 more blocks), mixed (a, b)"
    )


def test_a_budget_that_is_used_up_is_said_in_words() -> None:
    used_up = _time_left(Progress(0, None, 0, 0, "reads under none"))
    assert used_up == ", the budget is used up: this block is the last"
    assert _time_left(Progress(0, None, 0, None, "reads under none")) == ""
    assert _time_left(Progress(0, None, 0, 5_000_000_000, "reads under none")) == ", 5.00 s left"


MINUTE_NS = 60_000_000_000


def test_the_plan_is_told_before_the_first_run(capsys: pytest.CaptureFixture[str]) -> None:
    outlook = Outlook(4, 2, 10 * MINUTE_NS, None, ends_when_settled=True, shortage=None)
    text = (
        "4 schedulers \N{MULTIPLICATION SIGN} 2 loads, at most 10 min, ends as soon as it is settled "
        "(Ctrl-C keeps what is known)"
    )
    assert plan_text(outlook) == text
    fixed = Outlook(2, 1, None, 8, ends_when_settled=False, shortage=None)
    assert plan_text(fixed).endswith(" 1 load, 8 repetitions (Ctrl-C keeps what is known)")
    with ProgressDisplay(quiet=False) as display:
        display.planned(outlook)
    assert capsys.readouterr().err.strip() == text
    with ProgressDisplay(quiet=True) as display:
        display.planned(outlook)
    assert capsys.readouterr().err == ""


def test_a_budget_that_cannot_suffice_is_told_with_one_that_does() -> None:
    shortage = Shortage(90_000_000_000, 2, 4, 230_000_000_000)
    assert shortage_text(shortage, 4) == (
        "90 s are enough for 2 repetitions of 4 schedulers; an answer needs 4: --budget 4m"
    )
