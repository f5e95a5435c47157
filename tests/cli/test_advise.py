"""`blklab advise` on models: questions and flags, the plan before the start, the answer of `compare`."""

from __future__ import annotations

import io
import json
import os
import pty
import select
import shlex
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from blklab.analysis.verdict import analyse
from blklab.cli import advising, compare, run
from blklab.cli.comparing import Compared
from blklab.cli.options import values_of
from blklab.errors import ExitCode
from blklab.labs.advice import questions
from blklab.labs.advice.questions import USES, Wish
from blklab.quantities.formatting import TIMES
from blklab.records.store import Store
from blklab.report.documents.comparison import compare_document
from blklab.spec.request import build_specs
from blklab.testing.experiments import SchedulerBehaviour, make_experiment, make_spec

JOB = (
    "; purpose: Random reads.\n[reader]\nrw=randread\nbs=4k\ndirect=1\nioengine=libaio\niodepth=8\n"
    "time_based\nruntime=200ms\n"
)
DEVICE = "sim:fixed,latency=200us,depth=4,jitter=40us"


@pytest.fixture(autouse=True)
def small(job: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every use has one small load, so that a comparison takes a moment."""
    monkeypatch.setattr(questions, "workloads_for", lambda use: [job])
    monkeypatch.setattr(questions, "shipped_workloads", lambda: {job: Path(job)})


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Somebody who answers the questions in turn."""

    def given(*lines: str) -> None:
        monkeypatch.setattr(advising, "is_interactive", lambda: True)
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))

    return given


def _advised(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[dict[str, Any], str]:
    assert run(["advise", *words, "--json", "-"]) == ExitCode.OK
    captured = capsys.readouterr()
    return json.loads(captured.out), captured.err


def test_flags_alone_give_the_answer_of_compare(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    store = str(tmp_path / "runs.sqlite")
    document, _ = _advised(capsys, DEVICE, "--for", "database", "--yes", "-q", "--store", store)
    (command,) = document["plan"]["commands"]
    words = shlex.split(command)
    assert words[:3] == ["blklab", "compare", DEVICE]
    with Store.opened(store) as opened:
        record = opened.load(document["run"])
    (spec,) = build_specs(values_of("compare", compare.command, words[2:]))
    assert record.spec.good_enough == spec.good_enough == 0.05
    assert [one.text for one in record.spec.workloads] == [one.text for one in spec.workloads]
    assert (record.spec.budget_blocks, record.spec.seed) == (spec.budget_blocks, spec.seed)
    assert document["answer"].endswith(".")
    assert document["recommendation"]["subject"] == "model"
    assert document["applied"] is False


def test_four_questions_at_most_and_a_plan_before_the_start(
    answers: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    answers("4", DEVICE, "latency", "y")
    document, told = _advised(capsys, "-q")
    assert document["use"] == list(USES)[3] == "files"
    assert document["aim"] == "latency"
    assert "--goal latency" in document["plan"]["commands"][0]
    # A model's time is not ours, so it is not asked for.
    assert told.count("?") == 3 + 1
    before_start, _, _ = told.partition("Begin?")
    assert f"4 schedulers {TIMES} 1 load, at most 18 repetitions" in before_start
    assert document["run"] is not None


def test_what_a_flag_answers_is_not_asked(answers: Any, capsys: pytest.CaptureFixture[str]) -> None:
    answers("y")
    document, told = _advised(capsys, DEVICE, "--for", "desktop", "--goal", "throughput", "-q")
    assert "What runs here?" not in told
    assert "What matters more?" not in told
    assert (document["use"], document["aim"]) == ("desktop", "throughput")


def test_yes_takes_what_has_a_default_on_a_terminal_too(
    answers: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    answers("4")
    document, told = _advised(capsys, DEVICE, "--yes", "-q")
    assert told.count("?") == 1
    assert (document["use"], document["aim"]) == ("files", "usual")


def test_a_wrong_answer_is_asked_again(answers: Any, capsys: pytest.CaptureFixture[str]) -> None:
    answers("9", "postgres", "database", "", "n")
    document, told = _advised(capsys, DEVICE)
    assert told.count("is not among them; answer with a number or a name") == 2
    assert document["use"] == "database"


def test_a_no_starts_nothing_and_says_what_would(answers: Any, capsys: pytest.CaptureFixture[str]) -> None:
    answers("n")
    document, told = _advised(capsys, DEVICE, "--for", "files", "--goal", "usual")
    assert document["run"] is None
    assert f"blklab compare {DEVICE} -w" in told


def test_a_dry_run_prints_the_plan_and_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["advise", DEVICE, "--for", "files", "--dry-run"]) == ExitCode.OK
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"Plan for {DEVICE}:"
    assert lines[-1].startswith(f"blklab compare {DEVICE} -w ")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ([], ["--for USE", "--yes", "database"]),
        (["--for", "files"], ["--yes"]),
        (["--yes"], ["--for USE"]),
        (["--for", "watch", DEVICE, "--yes"], ["nothing runs on sim:fixed"]),
        (["--for", "files", "--watch", "10s", DEVICE, "--yes"], ["--watch goes with --for watch"]),
        (["--for", "files", DEVICE, "--yes", "--budget", "5"], ["budget"]),
        (["--for", "cinema", DEVICE, "--yes"], ["cinema"]),
    ],
)
def test_what_is_missing_or_wrong_is_named(
    words: list[str], named: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["advise", *words]) == ExitCode.USAGE
    error = capsys.readouterr().err
    assert all(part in error for part in named), error


def test_the_end_of_the_input_is_no_defect(answers: Any, capsys: pytest.CaptureFixture[str]) -> None:
    answers()
    assert run(["advise", DEVICE]) == ExitCode.USAGE
    assert "the questions were not answered" in capsys.readouterr().err


def test_the_end_of_the_input_at_the_last_question_starts_nothing(
    answers: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    answers()
    assert run(["advise", DEVICE, "--for", "files", "--goal", "usual"]) == ExitCode.USAGE
    assert "run 2" not in capsys.readouterr().err


def test_watching_comes_before_the_comparison_in_the_commands() -> None:
    watching = questions.Watching("sda.blkrecord", 60_000_000_000)
    wish = Wish("watch", "/srv/my data", watching, budget="30m", aim="latency")
    assert wish.commands == [
        "blklab record '/srv/my data' --for 60s -o sda.blkrecord",
        "blklab compare '/srv/my data' -w trace:sda.blkrecord --goal latency --good-enough 5% --budget 30m",
    ]


@pytest.mark.parametrize(
    ("winner", "flags", "answer", "applied"),
    [
        ("bfq", [], "y", True),
        ("bfq", [], "n", False),
        ("bfq", [], "", False),
        ("bfq", ["--apply"], None, True),
        ("bfq", ["--no-apply"], None, False),
        # Another is not better, so there is nothing to ask.
        ("mq-deadline", [], None, False),
        ("mq-deadline", ["--apply"], None, False),
    ],
)
def test_a_better_scheduler_is_set_if_that_is_wanted(
    winner: str,
    flags: list[str],
    answer: str | None,
    applied: bool,
    answers: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The comparison is of a disk with mq-deadline; that `apply` sets it is tested in test_apply.py."""
    record = make_experiment(
        make_spec(["mq-deadline", "bfq"], blocks=12), behaviours={winner: SchedulerBehaviour(speed=1.5)}
    )
    document = compare_document(record, analyse(record))
    assert (document.verdict.recommendation.action == "use") == (winner == "bfq")
    monkeypatch.setattr(advising, "compare_and_show", lambda *_, **__: Compared(ExitCode.OK, [document]))
    monkeypatch.setattr(advising, "require_udev", lambda: None)
    done: list[str] = []
    monkeypatch.setattr(advising, "apply_run", lambda run_id, *_, **__: done.append(run_id))
    answers(*([] if answer is None else [answer]))
    words = [DEVICE, "--for", "files", "--goal", "usual", "--yes", "-q", *flags]
    found, _ = _advised(capsys, *words)
    assert found["applied"] is applied
    assert done == ([document.run] if applied else [])


def test_on_a_terminal(tmp_path: Path) -> None:
    """A real one, with the program as it is started: it asks, and a no ends it."""
    process, terminal = pty.fork()
    if process == 0:
        os.environ["XDG_DATA_HOME"] = str(tmp_path)
        os.execv(sys.executable, [sys.executable, "-m", "blklab", "advise", "sim:ssd-sata"])  # noqa: S606
    shown, waiting = b"", [(b"Number or name:", b"1"), (b"[usual]:", b""), (b"[Y/n]:", b"n")]
    end = time.monotonic() + 120
    while time.monotonic() < end:
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            shown += os.read(terminal, 4096)
        except OSError:  # the program has ended
            break
        if waiting and shown.rstrip().endswith(waiting[0][0]):
            os.write(terminal, waiting.pop(0)[1] + b"\n")
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == ExitCode.OK, shown.decode()
    assert b"Nothing was started." in shown
    assert not waiting
