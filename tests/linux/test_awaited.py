"""File systems that are not mounted yet: what lies on them is neither forgotten nor taken for removed."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from dead_journals import dead_journal

from blklab.cli import run
from blklab.errors import ExitCode, RequirementError, RestoreError
from blklab.linux.journal import awaited
from blklab.linux.journal.journal import Journal
from blklab.linux.journal.recovery import preview, raise_for_failures, recover

_VICTIM = """
import os, signal, sys
from pathlib import Path
from blklab.linux.journal.journal import Journal
with Journal.create("killed", "a test") as journal:
    folder = journal.own_directory(Path(sys.argv[1]) / ".blklab-killed")
    (folder / "data").touch()
    journal.own_file(Path(sys.argv[1]) / "image").touch()
    journal.own_file(Path(sys.argv[2]) / "elsewhere").touch()
    os.kill(os.getpid(), signal.SIGKILL)
"""


class _Mounted:
    """A mount point that can be left and mounted again."""

    def __init__(self, source: Path, point: Path) -> None:
        self.source, self.point = source, point

    def mount(self) -> None:
        command = ["mount", "--bind", str(self.source), str(self.point)]
        if subprocess.run(command, check=False, capture_output=True).returncode:
            pytest.skip("nothing may be mounted here")

    def unmount(self) -> None:
        subprocess.run(["umount", str(self.point)], check=True)


@pytest.fixture
def mounted(needs_root: None, scratch: Path) -> Iterator[_Mounted]:
    source, point = scratch / "source", scratch / "point"
    source.mkdir()
    point.mkdir()
    made = _Mounted(source, point)
    made.mount()
    yield made
    subprocess.run(["umount", str(point)], check=False, capture_output=True)


@pytest.mark.root
def test_restoring_waits_for_the_file_system(mounted: _Mounted, state: Path, scratch: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", _VICTIM, str(mounted.point), str(scratch)], check=False)
    assert ended.returncode == -signal.SIGKILL
    mounted.unmount()
    (planned,) = preview(state)
    assert f"would wait for the file system of {mounted.point}" in planned.notes[0]
    for _ in range(2):
        (report,) = recover(state)
        assert isinstance(report.error, RestoreError)
        assert f"restoring waits for the file system of {mounted.point} (" in report.error.message
        assert report.path.exists()
    assert not (scratch / "elsewhere").exists(), "all else is undone"
    mounted.mount()
    raise_for_failures(recover(state))  # as the next start does
    assert list(mounted.point.iterdir()) == []
    assert list((state / "journal").glob("*.journal")) == []


@pytest.mark.root
def test_giving_up_on_it(mounted: _Mounted, state: Path, scratch: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", _VICTIM, str(mounted.point), str(scratch)], check=False)
    assert ended.returncode == -signal.SIGKILL
    mounted.unmount()
    (report,) = recover(state, force=True)
    assert report.error is None
    assert f"given up: it waited for the file system of {mounted.point}" in report.notes[0]
    assert not report.path.exists()


@pytest.mark.root
def test_a_second_mount_of_the_same_directory_is_not_waited_for(state: Path, scratch: Path) -> None:
    twice = _Mounted(scratch, scratch)
    twice.mount()
    try:
        command = [sys.executable, "-c", _VICTIM, str(scratch), str(scratch)]
        assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    finally:
        twice.unmount()
    raise_for_failures(recover(state))
    assert not (scratch / "image").exists()


def test_a_device_that_is_late_after_a_boot(state: Path) -> None:
    entry = {"kind": "filesystem", "path": "/dev/none-such", "uuid": "1-2-3"}
    dead_journal(state, "dead", [entry], boot_id="another")
    (report,) = recover(state)
    assert isinstance(report.error, RestoreError)
    assert "restoring waits for the device /dev/none-such" in report.error.message
    dead_journal(state, "dead", [entry])
    (report,) = recover(state)
    assert report.error is None, "within a boot it was unplugged"


@pytest.mark.root
def test_a_state_directory_that_is_not_mounted(
    mounted: _Mounted,
    scratch: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    state = mounted.point / "lib" / "blklab"
    monkeypatch.setenv("BLKLAB_STATE_DIR", str(state))
    table = scratch / "fstab"
    table.write_text(
        f"# a comment\n/dev/sdz1 {mounted.point} ext4 defaults,nofail 0 2\nnone swap swap sw 0 0\n"
    )
    monkeypatch.setattr(awaited, "FSTAB", table)
    (scratch / "left").touch()
    entry = {"kind": "file", "path": str(scratch / "left"), "parent_inode": scratch.stat().st_ino}
    dead_journal(state, "dead", [entry])
    mounted.unmount()
    for arguments in (["restore"], ["restore", "--dry-run"]):
        assert run(arguments) == ExitCode.REQUIREMENT
        shown = capsys.readouterr()
        assert f"lies on {mounted.point} (/dev/sdz1 in {table}), which is not mounted" in shown.err
        assert "nothing to restore" not in shown.out
    with pytest.raises(RequirementError), Journal.create("run-1", "a test"):
        pass
    assert list(mounted.point.iterdir()) == []
    mounted.mount()
    assert run(["restore"]) == ExitCode.OK
    assert not (scratch / "left").exists()


def test_file_systems_that_are_mounted_on_demand_are_not_waited_for(
    scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (scratch / "fstab").write_text(f"/dev/sdz1 {scratch} ext4 noauto 0 2\nbroken\n/dev/sda1 / ext4 rw 0 1\n")
    monkeypatch.setattr(awaited, "FSTAB", scratch / "fstab")
    awaited.require_mounted(scratch / "state")
