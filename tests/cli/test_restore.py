"""`blklab restore` after a run that was killed on a real loop device."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from blklab.cli import run
from blklab.errors import ExitCode
from blklab.linux.disks.disk import Disk
from blklab.linux.doctor import doctor
from blklab.linux.journal.recovery import recover
from real_devices import LoopMaker, changed, queue_of, tool

pytestmark = pytest.mark.root

_VICTIM = """
import os, signal, sys
from blklab.linux.disks.resolution import resolve
from blklab.linux.journal.journal import Journal
from blklab.linux.queue.schedulers import set_scheduler
disk = resolve(sys.argv[1]).leaves[0]
with Journal.create("killed", "a comparison") as journal:
    journal.protect_queue(disk)
    set_scheduler(disk, "bfq")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def disk(make_loop: LoopMaker, state: Path) -> Disk:
    made = make_loop(16)
    (made.sys_path / "queue" / "scheduler").write_text("mq-deadline")
    return made


def _kill(disk: Disk) -> None:
    ended = subprocess.run([sys.executable, "-c", _VICTIM, disk.dev_path], check=False)
    assert ended.returncode == -signal.SIGKILL


def test_nothing_to_do(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["restore"]) == ExitCode.OK
    assert "nothing to restore" in capsys.readouterr().out
    assert run(["restore", "--json", "-"]) == ExitCode.OK
    document = json.loads(capsys.readouterr().out)
    assert document == {
        "schema": "blklab.restore/1",
        "dry_run": False,
        "journals": [],
        "recordings": [],
        "last_recovery": None,
    }


def test_what_the_last_start_has_restored_is_said(
    disk: Disk, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _kill(disk)
    assert doctor.killed_runs().state == "lacking"
    assert [report.run_id for report in recover(state)] == ["killed"]  # as every comparison does
    assert doctor.killed_runs().state == "ok"
    assert run(["restore"]) == ExitCode.OK
    shown = capsys.readouterr().out
    assert "nothing to restore" in shown
    assert "run killed of 2" in shown
    assert f"{disk.name}: scheduler = mq-deadline" in shown
    run(["restore", "--json", "-"])
    (noted,) = json.loads(capsys.readouterr().out)["last_recovery"]["runs"]
    assert noted["run_id"] == "killed"


def test_doctor_and_restore_agree_on_a_journal_that_has_nothing_left_to_undo(
    disk: Disk, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As after a power cut: the queue is as new, and the journal is still there."""
    _kill(disk)
    (disk.sys_path / "queue" / "scheduler").write_text("mq-deadline")
    finding = doctor.killed_runs()
    assert (finding.state, finding.remedy) == ("ok", None)
    assert "killed was killed" in finding.text
    assert run(["restore"]) == ExitCode.OK
    assert "every setting already had its former value" in capsys.readouterr().out


def test_settings_come_back(disk: Disk, state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = queue_of(disk)
    _kill(disk)
    assert run(["restore", "--dry-run"]) == ExitCode.OK
    shown = capsys.readouterr().out
    assert "run killed" in shown
    assert "(a comparison)" in shown
    assert f"would be restored: {disk.name}: scheduler = mq-deadline" in shown
    assert changed(before, queue_of(disk))
    assert run(["restore"]) == ExitCode.OK
    assert f"restored: {disk.name}: scheduler = mq-deadline" in capsys.readouterr().out
    assert not changed(before, queue_of(disk))
    assert run(["restore"]) == ExitCode.OK
    assert "nothing to restore" in capsys.readouterr().out


def test_for_machines(disk: Disk, state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _kill(disk)
    assert run(["restore", "--json", "-"]) == ExitCode.OK
    (entry,) = json.loads(capsys.readouterr().out)["journals"]
    assert (entry["run"], entry["error"]) == ("killed", None)
    assert f"{disk.name}: scheduler = mq-deadline" in entry["done"]


def test_a_damaged_journal(disk: Disk, state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = queue_of(disk)
    _kill(disk)
    path = state / "journal" / "killed.journal"
    with path.open("ab") as file:
        file.write(b"nonsense\nnonsense\n")
    damaged = path.read_bytes()
    assert run(["restore"]) == ExitCode.DATA
    shown = capsys.readouterr().out
    assert "was damaged: line 3 is damaged" in shown
    assert f"restored: {disk.name}: scheduler = mq-deadline" in shown
    assert not changed(before, queue_of(disk))
    assert path.with_suffix(".damaged").read_bytes() == damaged
    assert run(["restore"]) == ExitCode.OK


def test_without_root(disk: Disk, scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As another user: the message is about root, and the journal stays."""
    tool("setpriv", "util-linux")
    scratch.chmod(0o755)
    monkeypatch.setenv("BLKLAB_STATE_DIR", str(scratch / "state"))
    _kill(disk)
    for arguments in (["restore"], ["restore", "--dry-run"]):
        command = ["setpriv", "--reuid=65534", "--clear-groups", sys.executable, "-m", "blklab", *arguments]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        if "No module named" in answer.stderr or "Permission denied" in answer.stderr:
            pytest.skip("other users cannot read this copy of blklab")
        assert answer.returncode == ExitCode.REQUIREMENT
        assert "needs root" in answer.stderr
    assert (scratch / "state" / "journal" / "killed.journal").exists()


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_elsewhere(
    platform: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only the system's name is faked; all modules are in memory by then."""
    for command in ("restore", "apply"):
        import_module(f"blklab.cli.{command}")
    monkeypatch.setattr(sys, "platform", platform)
    for arguments in (["restore"], ["apply", "bfq", "--device", "/dev/sda"]):
        assert run(arguments) == ExitCode.REQUIREMENT
        shown = capsys.readouterr()
        assert "needs Linux" in shown.err
        assert shown.out == ""
