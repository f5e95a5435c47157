"""An error of undoing stands beside the result: the verdict is printed, the runs are kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from blklab.cli import run
from blklab.errors import ExitCode, RestoreError
from blklab.linux.journal import undo as journal_undo
from blklab.linux.journal.recovery import recover

pytestmark = pytest.mark.root


def _fail(*_: object) -> None:
    raise RestoreError("it is held")


@pytest.mark.parametrize("command", ["compare", "run"])
def test_the_result_comes_first_then_the_error(
    needs_root: None,
    state: Path,
    tmp_path: Path,
    command: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    result, store = tmp_path / "result.json", tmp_path / "store.sqlite"
    job = tmp_path / "one.fio"
    job.write_text("[one]\nrw=randread\nbs=4k\nsize=1m\nnumber_ios=64\n")
    target = f"loop:16m,dir={tmp_path}"
    arguments = {
        "compare": ["-s", "none,mq-deadline", "-n", "1", "-w", str(job), "--store", str(store), target],
        "run": ["--scheduler", "mq-deadline", target, str(job)],
    }[command]
    monkeypatch.setitem(journal_undo._UNDO, "directory", _fail)
    assert run([command, "-q", "--json", str(result), *arguments]) == ExitCode.RUN_FAILED
    error = capsys.readouterr().err
    assert "error: some changes could not be undone: it is held" in error
    assert "blklab restore" in error
    assert json.loads(result.read_text())["schema"].startswith("blklab.")
    if command == "compare":
        assert run(["runs", "--store", str(store)]) == ExitCode.OK
        assert "not known yet" in capsys.readouterr().out
    monkeypatch.undo()
    monkeypatch.setenv("BLKLAB_STATE_DIR", str(state))
    assert [report.error for report in recover(state)] == [None]
