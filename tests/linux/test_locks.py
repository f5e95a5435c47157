"""One run on a disk at a time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from blklab.errors import ExitCode, LockedError, RequirementError
from blklab.linux.disks.disk import Disk
from blklab.linux.journal import state as state_folders
from blklab.linux.journal.locks import disk_locks

_HOLDER = """
import sys
from pathlib import Path
from blklab.linux.disks.disk import Disk
from blklab.linux.journal.locks import disk_locks
def disk(number):
    return Disk("sd" + number, "8:" + number, Path("/x"), Path("/x"), "", "", "", 1, None)
with disk_locks([disk(number) for number in sys.argv[1:]], run_id="20261121-0231-k3f9"):
    print("held", flush=True)
    sys.stdin.read()
"""


def _disk(number: int) -> Disk:
    return Disk(f"sd{number}", f"8:{number}", Path("/x"), Path("/x"), "", "", "", 1, None)


def _hold(*numbers: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _HOLDER, *map(str, numbers)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_run_is_told_who_is_there(state: Path) -> None:
    with _hold(1, 2) as process:
        with pytest.raises(LockedError) as caught, disk_locks([_disk(2), _disk(3)]):
            pass
        assert caught.value.exit_code == ExitCode.REFUSED
        for word in ("sd2", "20261121-0231-k3f9", f"process {process.pid}", "since 20"):
            assert word in caught.value.message
        with disk_locks([_disk(3)]):
            pass  # a failed attempt over several disks leaves none of them locked
        process.communicate()
    with disk_locks([_disk(1), _disk(2)]):
        pass


def test_the_kernel_frees_the_lock_of_a_killed_run(state: Path) -> None:
    with _hold(1) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
    with disk_locks([_disk(1)]):
        pass


def test_one_process_may_ask_twice(state: Path) -> None:
    with disk_locks([_disk(1)]):
        with disk_locks([_disk(1), _disk(2)]):
            pass
        command = [sys.executable, "-c", _HOLDER, "1"]
        refused = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "LockedError" in refused.stderr
    _hold(1).communicate()


def test_a_lock_that_says_nothing_yet(state: Path) -> None:
    with _hold(1) as process:
        (state / "locks" / "8:1.lock").write_text("")
        with pytest.raises(LockedError, match="just started"), disk_locks([_disk(1)]):
            pass
        process.communicate()


def test_a_lock_is_no_link_to_somewhere_else(state: Path, tmp_path: Path) -> None:
    (state / "locks").mkdir(parents=True, mode=0o755)
    (state / "locks" / "8:1.lock").symlink_to(tmp_path / "precious")
    with pytest.raises((OSError, RequirementError)), disk_locks([_disk(1)]):
        pass
    assert not (tmp_path / "precious").exists()


def test_a_lock_folder_that_cannot_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLKLAB_LOCK_DIR", "/proc/nowhere")
    with pytest.raises(RequirementError, match="/proc/nowhere"), disk_locks([_disk(1)]):
        pass


@pytest.mark.root
def test_another_users_folders_are_neither_used_nor_in_the_way(
    needs_root: None, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In /run/lock anybody may make a folder, or a link; root's locks are not there."""
    locks, former, elsewhere = scratch / "locks", scratch / "former", scratch / "elsewhere"
    monkeypatch.delenv("BLKLAB_LOCK_DIR", raising=False)
    monkeypatch.setattr(state_folders, "_DEFAULT_LOCKS", locks)
    monkeypatch.setattr(state_folders, "_FORMER_LOCKS", former)
    elsewhere.mkdir()
    for is_link in (False, True):
        if is_link:
            former.symlink_to(elsewhere)
        else:
            former.mkdir()
        os.chown(former, 4242, 4242, follow_symlinks=False)
        with disk_locks([_disk(1)]):
            assert (locks / "8:1.lock").exists()
        assert list(elsewhere.iterdir()) == []
        if is_link:
            former.unlink()
        else:
            former.rmdir()
    former.mkdir()
    with disk_locks([_disk(1)]):
        assert (former / "8:1.lock").exists(), "an older blklab must see that the disk is in use"
    os.chown(locks, 4242, 4242)
    with pytest.raises(RequirementError, match="other users"), disk_locks([_disk(1)]):
        pass


@pytest.mark.root
def test_a_link_of_another_user_to_the_lock_folder_is_not_followed(
    needs_root: None, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (scratch / "precious").mkdir()
    (scratch / "locks").symlink_to(scratch / "precious")
    os.chown(scratch / "locks", 4242, 4242, follow_symlinks=False)
    monkeypatch.setenv("BLKLAB_LOCK_DIR", str(scratch / "locks"))
    with pytest.raises(RequirementError, match="belongs to user 4242"), disk_locks([_disk(1)]):
        pass
    assert list((scratch / "precious").iterdir()) == []
