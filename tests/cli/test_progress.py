"""Progress on standard error: a line for each run, and for each stretch of slots."""

from __future__ import annotations

import io
import time
from dataclasses import replace

import pytest

from blklab.experiment.blocks import Progress
from blklab.experiment.outlook import Outlook, Shortage
from blklab.experiment.racing import OpenQuestion
from blklab.progress import line as progress_line
from blklab.progress.experiment import ProgressDisplay, _time_left, plan_text, shortage_text, standing
from blklab.quantities.sample_units import SampleUnit
from blklab.records.samples import RunSample
from blklab.report.terminal import Terminal
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
    turns = "reads, none, bfq in turns"
    assert lines == [f"repetition 1: {turns}", f"repetition 9: {turns}", "repetition 1: log under none"]


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


def _open(workload: str, leader: str | None, lead: float | None = None) -> OpenQuestion:
    return OpenQuestion(workload, ["none", "kyber"], 3, ROUNDS, leader, lead)


def test_the_state_so_far_is_told_in_a_few_words() -> None:
    assert standing([]) == ""
    assert standing([_open("reads", None)]) == ""
    assert standing([_open("reads", "kyber", 0.0712)]) == "kyber ahead by 7 %"
    assert standing([_open("reads", "kyber", 2.8)]) == "kyber ahead by 3.8 \N{MULTIPLICATION SIGN}"
    assert standing([_open("reads", "kyber", 8288.2)]) == "kyber ahead by 8289 \N{MULTIPLICATION SIGN}"
    assert standing([_open("reads", "none", 0.001)]) == "`none` hardly ahead"
    assert (
        standing([_open("reads", "kyber", 0.1), _open("log", "kyber", 0.2)]) == "kyber ahead in 2 open loads"
    )
    assert standing([_open("reads", "kyber", 0.1), _open("log", "none", 0.2)]) == "2 open loads"


def test_a_budget_that_is_used_up_is_said_in_words() -> None:
    used_up = _time_left(Progress(0, None, 0, 0, "reads under none"))
    assert used_up == "the budget is used up: this repetition is the last"
    assert _time_left(Progress(0, None, 0, None, "reads under none")) == ""
    assert _time_left(Progress(0, None, 0, 5_000_000_000, "reads under none")) == "5 s left"


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal of 80 columns."""
    console = Terminal(file=io.StringIO(), force_terminal=True, width=80, color_system=None)
    monkeypatch.setattr(progress_line, "console_err", lambda: console)
    return console


def _shown(display: ProgressDisplay, console: Terminal) -> str:
    with console.capture() as captured:
        console.print(display._bar.get_renderable())
    return captured.get().rstrip("\n")


def test_what_counts_is_never_cut_at_80_columns(terminal: Terminal) -> None:
    """Percent, time and state stand before the name of the run, however long that is."""
    display = ProgressDisplay(quiet=False)
    current = "reader-beside-writers under mq-deadline:async_depth=64:fifo_batch=64, in turns"
    questions = [_open(name, "mq-deadline") for name in ("reads", "writes", "log")]
    display.progressed(Progress(30, None, 3, 180_000_000_000, current, questions))
    (line,) = _shown(display, terminal).splitlines()
    assert len(line) <= 80
    assert "0 % · at most 3 min left · mq-deadline ahead in 3 open loads" in line
    assert line.rstrip().endswith("…")


def test_the_part_that_is_done_is_of_the_plan_or_of_the_longest_time(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    display = ProgressDisplay(quiet=False)
    display.progressed(Progress(6, 8, 1, None, "reads under none"))
    assert "75 % · reads under none" in _shown(display, terminal)
    task = display._bar.tasks[0]
    assert (task.completed, task.total) == (750, 1000)
    now_ns = time.monotonic_ns()
    monkeypatch.setattr("blklab.progress.experiment.time.monotonic_ns", lambda: now_ns + 60_000_000_000)
    display.progressed(Progress(6, None, 1, 180_000_000_000, "reads under none"))
    assert "25 % · 3 min left" in _shown(display, terminal)


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
    short = replace(outlook, budget_ns=15_000_000_000, shortage=Shortage(15_000_000_000, 0, 9, MINUTE_NS))
    whole = "at most 15 s or as long as the first repetition takes, which is always made whole, ends"
    assert whole in plan_text(short)
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
    assert shortage_text(Shortage(15_000_000_000, 0, 9, 55_000_000_000), 4) == (
        "15 s are too short for one repetition of 4 schedulers; an answer needs 9: --budget 55s"
    )


@pytest.mark.parametrize("quiet", [False, True])
def test_a_budget_that_the_pilots_left_too_short_is_told(
    capsys: pytest.CaptureFixture[str], quiet: bool
) -> None:
    with ProgressDisplay(quiet=quiet) as display:
        display.falls_short(Shortage(40_000_000_000, 2, 9, 70_000_000_000), 4)
    assert ("an answer needs 9: --budget 70s" in capsys.readouterr().err) is not quiet


def outlook_within(shortage: Shortage) -> Outlook:
    """Of an experiment that a budget limits."""
    return Outlook(
        schedulers=4,
        workloads=2,
        blocks=None,
        budget_ns=shortage.budget_ns,
        ends_when_settled=True,
        shortage=shortage,
    )


def test_the_plan_is_wrapped_at_words(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.StringIO()
    terminal = Terminal(file=file, width=80, force_terminal=True, color_system=None)
    monkeypatch.setattr(progress_line, "console_err", lambda: terminal)
    shortage = Shortage(blocks=2, needed=5, budget_ns=90 * 10**9, enough_ns=230 * 10**9)
    ProgressDisplay(quiet=False).planned(outlook_within(shortage))
    lines = file.getvalue().splitlines()
    assert all(len(line) <= 80 for line in lines)
    plan = next(number for number, line in enumerate(lines) if line.startswith("4 schedulers"))
    assert lines[plan + 1] == "keeps what is known)"
    assert "--budget 4m" in "\n".join(lines)


def test_a_second_budget_is_named_only_if_it_is_longer(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    display = ProgressDisplay(quiet=False, tells_plan=False)

    def shortage(seconds: int) -> Shortage:
        return Shortage(blocks=1, needed=6, budget_ns=60 * 10**9, enough_ns=seconds * 10**9)

    display.planned(outlook_within(shortage(480)))
    display.falls_short(shortage(180), 4)
    assert capsys.readouterr().err == ""
    display.falls_short(shortage(600), 4)
    assert "--budget 10m" in capsys.readouterr().err


def test_a_plan_without_a_budget_says_how_long_it_may_take() -> None:
    plan = Outlook(
        schedulers=4,
        workloads=2,
        blocks=18,
        budget_ns=None,
        ends_when_settled=True,
        shortage=None,
        longest_ns=900 * 10**9,
    )
    assert "at most 18 repetitions (about 15 min), ends as soon" in plan_text(plan)
