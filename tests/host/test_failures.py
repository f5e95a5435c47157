"""Failures on a real machine: each is a typed error or a failed sample, and all settings are as before."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from blklab.errors import (
    BlklabError,
    DeviceVanishedError,
    MissingToolError,
    NotRootError,
    RequirementError,
    SpaceError,
)
from blklab.linux.disks.disk import Disk, read_disk
from blklab.linux.scratch.data_files import check_space, lay_out
from blklab.spec.schedulers import parse_scheduler_choices
from host.conftest import READ, RUN_ID, WRITE, Filesystem, LoopDevice, cell, opened, work
from real_devices import attach_again, own_loops
from waiting import wait_until

pytestmark = pytest.mark.root

ENDLESS_READ = (
    "[r]\nrw=randread\nbs=4k\nsize=8m\ndirect=1\nioengine=libaio\niodepth=8\ntime_based\nruntime=1h\n"
)
"""Only a fault ends it."""


@contextmanager
def meanwhile(disk: Disk, act: Callable[[], object]) -> Iterator[None]:
    """Acts once fio is running on a disk."""
    path = disk.sys_path / "stat"

    def completed_reads() -> int:
        return int(path.read_text().split()[0])

    before = completed_reads()

    def act_in_time() -> None:
        wait_until(lambda: completed_reads() > before, f"fio reads from {disk.name}")
        act()

    thread = threading.Thread(target=act_in_time)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def detach(disk: Disk) -> None:
    """Marks a loop device for removal once it is closed; it answers with errors until then."""
    os.truncate(Path((disk.sys_path / "loop" / "backing_file").read_text().rstrip("\n")), 0)
    subprocess.run(["losetup", "--detach", disk.dev_path], check=True)


def test_no_space_is_found_out_before_anything_is_laid_out(ext4: Filesystem) -> None:
    big = work("[w]\nrw=write\nsize=1g\n")
    with opened(str(ext4.folder)) as session:
        with pytest.raises(SpaceError, match=r"has .* MiB free; the test data need 1\.00 GiB"):
            session.check([], [big])
        with pytest.raises(SpaceError):
            session.prepare([big], print)
        assert not (ext4.folder / f".blklab-{RUN_ID}").exists()
    with pytest.raises(SpaceError), opened(f"loop:1g,dir={ext4.folder}"):
        pass
    ext4.assert_untouched()


def test_a_reserve_stays_free(ext4: Filesystem) -> None:
    status = os.statvfs(ext4.folder)
    free = status.f_bavail * status.f_frsize
    with pytest.raises(SpaceError, match="must stay free"):
        check_space(ext4.folder, free - (32 << 20))
    check_space(ext4.folder, free - (70 << 20))


def test_space_that_runs_out_while_laying_out_is_an_error(ext4: Filesystem) -> None:
    with pytest.raises(SpaceError, match="no space for"):
        lay_out(ext4.folder, {"big": 1 << 30})


def test_a_read_only_file_system_is_an_error(ext4: Filesystem) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(ext4.folder)], check=True)
    with opened(str(ext4.folder)) as session, pytest.raises(SpaceError, match="read-only file system"):
        session.check(parse_scheduler_choices("none"), [work(WRITE)])
    with pytest.raises(SpaceError, match="read-only"):
        lay_out(ext4.folder, {"x": 4096})
    ext4.assert_untouched()


@pytest.mark.parametrize("target", ["directory", "loop"])
def test_without_fio_nothing_begins(
    target: str, ext4: Filesystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: Path
) -> None:
    for name in ("setpriv", "unshare"):
        (tmp_path / name).symlink_to(shutil.which(name) or "")
    monkeypatch.setenv("PATH", str(tmp_path))
    name = str(ext4.folder) if target == "directory" else f"loop:8m,dir={ext4.folder}"
    with pytest.raises(MissingToolError, match="fio is not installed"), opened(name):
        pass
    assert not state.exists()
    monkeypatch.undo()
    ext4.assert_untouched()


def test_fio_that_fails_gives_a_failed_sample(raw: LoopDevice) -> None:
    """From some moment on the device answers with errors, because its backing file is truncated."""
    endless = work(ENDLESS_READ)
    with opened(raw.device) as session:
        session.check(parse_scheduler_choices("mq-deadline"), [endless])
        with meanwhile(raw.disk, lambda: os.truncate(raw.backing, 0)):
            sample = session.run(cell("mq-deadline", endless))
        assert sample.status == "failed"
        assert sample.error is not None
        assert "Input/output error" in sample.error
        assert sample.jobs == []
        assert sample.settings[f"{raw.name}/scheduler"] == "mq-deadline"
    raw.assert_unchanged()


def test_a_device_that_vanishes_ends_the_experiment(raw: LoopDevice, state: Path) -> None:
    """Detached while fio is on it: it answers with errors and is gone as soon as fio has closed it."""
    endless, disk = work(ENDLESS_READ), raw.disk
    with opened(raw.device) as session:
        session.check(parse_scheduler_choices("bfq"), [endless])
        with meanwhile(disk, lambda: detach(disk)), pytest.raises(DeviceVanishedError, match=raw.name):
            session.run(cell("bfq", endless))
        with pytest.raises(DeviceVanishedError):
            session.run(cell("none", endless))
    # No journal is kept: the settings went with the device, and another disk is not ours to change.
    assert list((state / "journal").iterdir()) == []


def test_our_own_loop_device_may_vanish_too(disk_folder: Path) -> None:
    endless = work(ENDLESS_READ)
    with opened(f"loop:16m,dir={disk_folder}") as session:
        session.prepare([endless], print)
        disk = read_disk(Path(f"/sys/block/{session.target.disks[0].name}").resolve())
        with meanwhile(disk, lambda: detach(disk)), pytest.raises(DeviceVanishedError):
            session.run(cell("none", endless))
    assert own_loops(disk_folder) == []
    assert list(disk_folder.iterdir()) == []


def test_another_disk_under_the_same_name_is_noticed(raw: LoopDevice) -> None:
    with opened(raw.device) as session:
        session.run(cell("none", work(READ)))
        subprocess.run(["losetup", "--detach", raw.device], check=True)
        attach_again(raw.number, raw.backing)
        with pytest.raises(DeviceVanishedError):
            session.run(cell("none", work(READ)))


OPEN = """
import sys
from blklab.backends.host import BACKEND
from blklab.backends.protocol import SessionOptions
from blklab.errors import BlklabError
from blklab.spec.targets import parse_target
try:
    with BACKEND.open(parse_target(sys.argv[1]), SessionOptions(run_id="second")):
        print("opened")
except BlklabError as error:
    print(type(error).__name__, error.message)
"""


def open_elsewhere(device: str) -> str:
    """The answer that another process gets when it opens a device."""
    return subprocess.run(
        [sys.executable, "-c", OPEN, device], check=True, capture_output=True, text=True
    ).stdout


def test_two_runs_on_one_disk_at_once_are_refused(raw: LoopDevice) -> None:
    with opened(raw.device, run_id="first"):
        assert open_elsewhere(raw.device).startswith(
            f"LockedError another run uses {raw.name}: run first, process"
        )
    assert open_elsewhere(raw.device) == "opened\n"


def test_root_is_needed(raw: LoopDevice) -> None:
    """In a forked process that becomes the user nobody, who may not be able to start this Python."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setresuid(65534, 65534, 65534)
            with opened(raw.device):
                code = 2
        except NotRootError:
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_unknown_places_are_errors() -> None:
    with (
        pytest.raises(RequirementError, match="there is no directory"),
        opened("loop:8m,dir=/nowhere/at/all"),
    ):
        pass
    with pytest.raises(BlklabError), opened("/nowhere/at/all"):
        pass
    with pytest.raises(RequirementError, match="memory"), opened("/dev/shm"):
        pass
