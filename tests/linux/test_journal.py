"""The journal: written before each change, and undone at every end."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from blklab.errors import InterruptedRunError, LockedError, RequirementError, RestoreError
from blklab.linux.disks import loop
from blklab.linux.disks.disk import Disk
from blklab.linux.disks.loop import BackingFile
from blklab.linux.disks.resolution import resolve
from blklab.linux.journal.file import decode
from blklab.linux.journal.journal import Journal
from blklab.linux.journal.locks import disk_locks
from blklab.linux.journal.recovery import recover
from blklab.linux.processes.signals import signals_as_exceptions
from blklab.linux.queue.attributes import write_attribute
from blklab.linux.queue.schedulers import available_schedulers, set_scheduler
from real_devices import (
    LoopMaker,
    backing_of,
    changed,
    number_of,
    own_loops,
    queue_of,
    remove_loop,
)
from waiting import wait_until


def test_a_normal_end_removes_what_was_made(state: Path, scratch: Path) -> None:
    with Journal.create("run-1", "a test") as journal:
        folder = journal.own_directory(scratch / ".blklab-run-1")
        (folder / "deep").mkdir()
        (folder / "deep" / "file").write_text("x")
        file = journal.own_file(scratch / "image")
        file.write_text("x")
        never = journal.own_file(scratch / "never-made")
        assert journal.path.exists()
    assert not folder.exists()
    assert not file.exists()
    assert not never.exists()
    assert not list((state / "journal").glob("*.journal"))


def test_an_exception_restores_and_passes_on(state: Path, scratch: Path) -> None:
    with pytest.raises(ValueError, match="oops"), Journal.create("run-1", "a test") as journal:
        folder = journal.own_directory(scratch / ".blklab-run-1")
        raise ValueError("oops")
    assert not folder.exists()
    assert not list((state / "journal").glob("*.journal"))


def test_a_signal_just_after_the_file_was_made_leaves_none(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is there, and no `finally` knows of it yet."""

    def synced(folder: Path) -> None:
        assert list(folder.glob("*.journal"))
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr("blklab.linux.journal.journal.sync_directory", synced)
    with pytest.raises(InterruptedRunError), signals_as_exceptions(), Journal.create("run-1", "a test"):
        pytest.fail("the signal came before")
    assert not list((state / "journal").glob("*.journal"))


def test_every_entry_is_on_disk_before_the_change(state: Path, scratch: Path) -> None:
    with Journal.create("run-1", "a test") as journal:
        seen: list[bool] = []
        real_fsync = os.fsync

        def fsync(descriptor: int) -> None:
            seen.append((scratch / ".blklab-run-1").exists())
            real_fsync(descriptor)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "fsync", fsync)
            journal.own_directory(scratch / ".blklab-run-1")
        assert not seen[0]
        assert b"directory" in journal.path.read_bytes()


def test_links_in_own_folders_are_not_followed(state: Path, scratch: Path) -> None:
    (scratch / "precious").mkdir()
    (scratch / "precious" / "file").write_text("x")
    with Journal.create("run-1", "a test") as journal:
        folder = journal.own_directory(scratch / ".blklab-run-1")
        (folder / "link").symlink_to(scratch / "precious")
    assert (scratch / "precious" / "file").exists()


@pytest.mark.root
def test_what_is_mounted_in_own_folders_is_not_emptied(needs_root: None, state: Path, scratch: Path) -> None:
    with pytest.raises(RestoreError, match="mounted"), Journal.create("run-1", "a test") as journal:
        folder = journal.own_directory(scratch / ".blklab-run-1")
        (folder / "inner").mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder / "inner"], check=False).returncode:
            pytest.skip("nothing may be mounted here")
        (folder / "inner" / "precious").touch()
    assert (folder / "inner" / "precious").exists()
    subprocess.run(["umount", folder / "inner"], check=True)
    (report,) = recover(state)
    assert report.error is None
    assert not folder.exists()


def test_what_exists_already_is_not_ours(state: Path, scratch: Path) -> None:
    (scratch / ".blklab-old").mkdir()
    (scratch / "old").touch()
    with Journal.create("run-1", "a test") as journal:
        with pytest.raises(RequirementError, match="already exists"):
            journal.own_directory(scratch / ".blklab-old")
        with pytest.raises(RequirementError, match="already exists"):
            journal.own_file(scratch / "old")
        with pytest.raises(ValueError, match="does not begin with"):
            journal.own_directory(scratch / "home")
    assert (scratch / ".blklab-old").exists()
    assert (scratch / "old").exists()


def test_released_entries_are_left_alone(state: Path, scratch: Path) -> None:
    with Journal.create("run-1", "a test") as journal:
        file = journal.own_file(scratch / "kept")
        file.touch()
        journal.keep_changes()
    assert file.exists()


def test_a_second_journal_of_that_name_is_refused(state: Path) -> None:
    with (
        Journal.create("run-1", "a test"),
        pytest.raises(RestoreError, match="already"),
        Journal.create("run-1", "x"),
    ):
        pass


def test_a_state_directory_that_others_may_change_is_refused(state: Path) -> None:
    state.mkdir(mode=0o777)
    state.chmod(0o777)
    with pytest.raises(RequirementError, match="other users"), Journal.create("run-1", "x"):
        pass


def test_a_signal_in_the_midst_of_restoring(
    state: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds: list[int] = []
    real = Journal.restore

    def restore(journal: Journal) -> Any:
        rounds.append(1)
        os.kill(os.getpid(), signal.SIGTERM)
        return real(journal)

    monkeypatch.setattr(Journal, "restore", restore)
    with (
        pytest.raises(InterruptedRunError),
        signals_as_exceptions(),
        Journal.create("run-1", "a test") as journal,
    ):
        folder = journal.own_directory(scratch / ".blklab-run-1")
    assert rounds
    assert not folder.exists()
    assert not list((state / "journal").glob("*.journal"))


def test_a_keyboard_interrupt_in_the_midst_of_restoring(
    state: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless signals become exceptions, it interrupts restoring, which is then repeated."""
    rounds: list[int] = []
    real = Journal.restore

    def restore(journal: Journal) -> Any:
        rounds.append(1)
        if len(rounds) < 3:
            raise KeyboardInterrupt
        return real(journal)

    monkeypatch.setattr(Journal, "restore", restore)
    with pytest.raises(KeyboardInterrupt), Journal.create("run-1", "a test") as journal:
        folder = journal.own_directory(scratch / ".blklab-run-1")
    assert len(rounds) == 3
    assert not folder.exists()


def test_a_full_disk_leaves_no_half_line(state: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk is simulated by the write that fails half-way."""
    with Journal.create("run-1", "a test") as journal:
        journal.own_file(scratch / "one")
        real = os.write

        def write(descriptor: int, data: bytes) -> int:
            if descriptor == journal._descriptor:
                if len(data) > 20:
                    return real(descriptor, data[:20])
                raise OSError(28, "No space left on device")
            return real(descriptor, data)

        with monkeypatch.context() as patch:
            patch.setattr(os, "write", write)
            # A line of which 20 bytes at a time go through, until fewer are left.
            with pytest.raises(RequirementError, match="no space left"):
                journal.own_file(scratch / "two")
        journal.own_file(scratch / "three")
        content = decode(journal.path.read_bytes())
        assert content.damage is None
        assert [entry.get("path") for entry in content.entries[1:]] == [
            str(scratch / "one"),
            str(scratch / "three"),
        ]


@pytest.mark.root
def test_sysfs_attribute_comes_back(make_loop: LoopMaker, state: Path) -> None:
    path = make_loop(16).sys_path / "queue" / "read_ahead_kb"
    before = path.read_text()
    with Journal.create("run-1", "a test") as journal:
        assert journal.protect_attribute(path) == before
        path.write_text("64")
    assert path.read_text() == before


def test_a_living_run_is_left_alone(state: Path, scratch: Path) -> None:
    with Journal.create("alive", "a test") as journal:
        folder = journal.own_directory(scratch / ".blklab-alive")
        assert recover(state) == []
        assert folder.exists()


@pytest.mark.root
def test_own_loop_device(needs_loop: None, state: Path, scratch: Path) -> None:
    with Journal.create("run-1", "a test") as journal:
        image = journal.own_file(scratch / "image")
        with image.open("wb") as file:
            file.truncate(32 << 20)
        disk = loop.create(journal, image)
        assert own_loops(scratch) == [disk.name]
        assert disk.size_bytes == 32 << 20
        assert (disk.sys_path / "loop" / "dio").read_text() == "1\n"
        journal.protect_queue(disk)
        set_scheduler(disk, "bfq")
        second = journal.own_file(scratch / "second")
        with second.open("wb") as file:
            file.truncate(16 << 20)
        other = loop.create(journal, second)
        loop.detach(journal, other)
        # Of its files, not by its name: another program may get the number at once.
        assert own_loops(scratch) == [disk.name]
    assert own_loops(scratch) == []
    assert not image.exists()


@pytest.mark.root
def test_an_empty_loop_device_that_is_there_already_is_not_used(
    make_loop: LoopMaker, state: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = make_loop(16)
    number = number_of(there)
    subprocess.run(["losetup", "--detach", there.dev_path], check=True)
    monkeypatch.setattr(loop, "first_free_index", lambda: number)
    with Journal.create("run-1", "a test") as journal:
        image = journal.own_file(scratch / "image")
        with image.open("wb") as file:
            file.truncate(16 << 20)
        assert number_of(loop.create(journal, image)) > number


@pytest.mark.root
def test_a_loop_device_that_another_program_takes_is_left_to_it(
    make_loop: LoopMaker, state: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other program attaches a file to the device between our creating it and our attaching one."""
    theirs = make_loop(16)
    numbers = iter([number_of(theirs)])
    add = loop._add
    monkeypatch.setattr(loop, "_add", lambda journal, image: next(numbers, None) or add(journal, image))
    with Journal.create("run-1", "a test") as journal:
        image = journal.own_file(scratch / "image")
        with image.open("wb") as file:
            file.truncate(16 << 20)
        assert loop.create(journal, image).name != theirs.name
    assert backing_of(number_of(theirs)) is not None


@pytest.mark.root
def test_a_loop_device_that_another_program_removes_is_made_again(
    needs_loop: None, state: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other program took the device that we had just created, is done with it, and has removed it."""
    add = loop._add
    lost: list[int] = []

    def add_and_lose(journal: Journal, backing: BackingFile) -> int:
        number = add(journal, backing)
        if not lost:
            lost.append(number)
            remove_loop(number, backing.path)
        return number

    monkeypatch.setattr(loop, "_add", add_and_lose)
    with Journal.create("run-1", "a test") as journal:
        image = journal.own_file(scratch / "image")
        with image.open("wb") as file:
            file.truncate(16 << 20)
        disk = loop.create(journal, image)
        assert own_loops(scratch) == [disk.name]
    assert own_loops(scratch) == []


@pytest.mark.root
def test_own_loop_device_over_nothing(needs_loop: None, state: Path, scratch: Path) -> None:
    with pytest.raises(FileNotFoundError), Journal.create("run-1", "a test") as journal:
        loop.create(journal, scratch / "gone")


@pytest.mark.root
def test_the_real_disk_under_the_root_directory(
    needs_root: None, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sets every scheduler of the disk for a moment, and checks that all is restored.

    Loop devices have no hardware to reset. The disk is the machine's, so the test takes its lock, which keeps
    other runs of blklab away.
    """
    try:
        leaves = resolve("/").leaves
    except RequirementError as error:
        pytest.skip(f"/ is on no disk here: {error.message}")
    disk = leaves[0]
    monkeypatch.delenv("BLKLAB_LOCK_DIR")
    with ExitStack() as stack:
        wait_until(lambda: _locked(stack, disk), f"no other run of blklab is on {disk.name}")
        before = queue_of(disk)
        with Journal.create("run-1", "a test") as journal:
            journal.protect_queue(disk)
            _, offered = available_schedulers(disk)
            for name in offered:
                set_scheduler(disk, name)
                assert available_schedulers(disk)[0] == name
            write_attribute(disk, "nomerges", "2")
            write_attribute(disk, "read_ahead_kb", "64")
        assert not changed(before, queue_of(disk))


def _locked(stack: ExitStack, disk: Disk) -> bool:
    try:
        stack.enter_context(disk_locks([disk], run_id="test"))
    except LockedError:
        return False
    return True
