"""`blklab compare` says what made the difference, on models unless told otherwise."""

from __future__ import annotations

import pytest

from blklab.cli import run
from blklab.errors import ExitCode
from command_runs import json_of

_ASKED = ("compare", "sim:hdd-7200", "-w", "many-readers", "-s", "bfq,mq-deadline", "--blocks", "6")
_SHORT = ("--runtime", "500ms")


def test_the_cause_is_in_the_document_and_stays_with_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    document = json_of(capsys, *_ASKED, *_SHORT)
    [cause] = document["causes"]
    assert (cause["workload"], cause["better"], cause["worse"]) == ("many-readers", "bfq", "mq-deadline")
    assert cause["kind"] == "runs"
    assert cause["text"].startswith("bfq serves ")
    assert json_of(capsys, "report", document["run"])["causes"] == [cause]


def test_the_terminal_and_the_page_have_it_beneath_the_answer(
    capsys: pytest.CaptureFixture[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    page = tmp_path_factory.mktemp("page") / "report.html"
    assert run([*_ASKED, *_SHORT, "--html", str(page)]) == ExitCode.OK
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("Why: bfq serves ") for line in lines)
    assert len(lines) <= 25
    assert "<b>Why:</b> bfq serves " in page.read_text()


def test_it_can_be_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert json_of(capsys, *_ASKED, *_SHORT, "--no-why")["causes"] == []


def test_equal_schedulers_have_none(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("compare", "sim:hdd-7200", "-w", "direct-sequential-write", "-s", "none,kyber", "--blocks", "4")
    document = json_of(capsys, *asked, *_SHORT)
    assert document["verdict"]["status"] == "equal"
    assert document["causes"] == []
