"""Undoing on a kernel that has made a mistake: what happens to the process that undoes, blklab outlives."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from blklab.errors import RestoreError
from blklab.linux.journal.journal import Journal
from blklab.linux.journal.undo import UndoResult
from blklab.linux.journal.undo_apart import undone_apart

OOPS = "Oops: 0002 [#1] PREEMPT SMP NOPTI"


def killed() -> UndoResult:
    """As the kernel ends a process that oopses."""
    os.kill(os.getpid(), signal.SIGKILL)
    return UndoResult()


def hung() -> UndoResult:
    """As a process that waits for a request that is lost."""
    time.sleep(3600)
    return UndoResult()


def refused() -> UndoResult:
    """Fails with an error that nothing expects."""
    raise OSError("Input/output error")


def test_the_result_of_the_other_process_is_handed_on() -> None:
    assert undone_apart(lambda: UndoResult(["a"], ["b"], ["c" * 200_000])) == UndoResult(
        ["a"], ["b"], ["c" * 200_000]
    )


def test_it_runs_in_another_process() -> None:
    assert undone_apart(lambda: UndoResult([str(os.getpid())])).done != [str(os.getpid())]


@pytest.mark.parametrize(
    ("undo", "limit_s", "failure"),
    [
        (killed, 60.0, "the kernel ended the process"),
        (hung, 0.3, "hangs"),
        (refused, 60.0, "Input/output error"),
    ],
)
def test_what_ends_the_other_process_is_a_failure(
    undo: Callable[[], UndoResult], limit_s: float, failure: str
) -> None:
    (found,) = undone_apart(undo, limit_s).failures
    assert failure in found


def test_a_journal_is_undone_apart_after_a_mistake(state: Path, scratch: Path) -> None:
    with Journal.create("run-1", "a test") as journal:
        journal.undo_apart_after(lambda: OOPS)
        folder = journal.own_directory(scratch / ".blklab-run-1")
        (folder / "file").write_text("x")
    assert not folder.exists()
    assert not list((state / "journal").glob("*.journal"))


def test_a_journal_that_cannot_be_undone_names_the_mistake(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("blklab.linux.journal.journal.undo_all", lambda *_, **__: killed())
    with (
        pytest.raises(RestoreError, match="Oops: 0002") as caught,
        Journal.create("run-1", "a test") as journal,
    ):
        journal.undo_apart_after(lambda: OOPS)
    assert "restart the machine" in (caught.value.hint or "")
    assert list((state / "journal").glob("*.journal"))
