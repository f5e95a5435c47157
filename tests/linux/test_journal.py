"""The journal: written before each change, undone at every end, never trusted blindly."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

from blklab.errors import InterruptedRunError, JournalError, LockedError, RequirementError, RestoreError
from blklab.interrupts import signals_as_exceptions
from blklab.linux import journal as journal_module
from blklab.linux import loop
from blklab.linux.disks import Disk
from blklab.linux.journal import Journal
from blklab.linux.journal_file import decode, encode_line
from blklab.linux.locks import disk_locks
from blklab.linux.queue import read_attribute, set_scheduler, write_attribute
from blklab.linux.recovery import preview, raise_for_failures, recover, stale_journals
from blklab.linux.undo import identity_of
from real_devices import LoopMaker, changed, queue_of, remove_loop

Edit = dict[str, Any]


def _dead_journal(state: Path, run_id: str, entries: list[Edit], **header: str) -> Path:
    """A journal as a killed run leaves it."""
    folder = state / "journal"
    folder.mkdir(parents=True, exist_ok=True)
    head = {
        "kind": "header",
        "version": 1,
        "run_id": run_id,
        "purpose": "a test",
        "pid": 1,
        "boot_id": journal_module.boot_id(),
        "started_at": "2026-01-01T00:00:00+00:00",
        **header,
    }
    data, checksum = b"", ""
    for entry in [head, *({"number": number, **entry} for number, entry in enumerate(entries, start=1))]:
        line, checksum = encode_line(entry, checksum)
        data += line
    path = folder / f"{run_id}.journal"
    path.write_bytes(data)
    path.chmod(0o600)
    return path


def _files(count: int) -> list[Edit]:
    return [{"kind": "file", "path": f"/x/{number}", "parent_inode": 1} for number in range(count)]


def _die_with_journal(state: Path, disk: Disk, run_id: str) -> Path:
    """Lets a child change a disk's queue under a journal and kill itself."""
    program = (
        "import os, signal, sys\n"
        "from blklab.linux.disks import resolve\n"
        "from blklab.linux.journal import Journal\n"
        "from blklab.linux.queue import set_scheduler, write_attribute\n"
        "disk = resolve(sys.argv[1]).leaves[0]\n"
        "with Journal.create(sys.argv[2], 'a test') as journal:\n"
        "    journal.protect_queue(disk)\n"
        "    set_scheduler(disk, 'bfq')\n"
        "    write_attribute(disk, 'iosched/slice_idle', '0')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program, disk.dev_path, run_id], check=False)
    assert ended.returncode == -signal.SIGKILL
    path = state / "journal" / f"{run_id}.journal"
    assert path.exists()
    return path


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
    assert not list((state / "journal").iterdir())


def test_an_exception_restores_and_passes_on(state: Path, scratch: Path) -> None:
    with pytest.raises(ValueError, match="oops"), Journal.create("run-1", "a test") as journal:
        folder = journal.own_directory(scratch / ".blklab-run-1")
        raise ValueError("oops")
    assert not folder.exists()
    assert not list((state / "journal").iterdir())


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
        assert seen == [False]
        assert b"directory" in journal.path.read_bytes()


def test_links_in_own_folders_are_not_followed(state: Path, scratch: Path) -> None:
    (scratch / "precious").mkdir()
    (scratch / "precious" / "file").write_text("x")
    with Journal.create("run-1", "a test") as journal:
        folder = journal.own_directory(scratch / ".blklab-run-1")
        (folder / "link").symlink_to(scratch / "precious")
    assert (scratch / "precious" / "file").exists()


def test_what_exists_already_is_not_ours(state: Path, scratch: Path) -> None:
    (scratch / ".blklab-old").mkdir()
    (scratch / "old").touch()
    with Journal.create("run-1", "a test") as journal:
        with pytest.raises(RequirementError, match="there already"):
            journal.own_directory(scratch / ".blklab-old")
        with pytest.raises(RequirementError, match="there already"):
            journal.own_file(scratch / "old")
        with pytest.raises(ValueError, match="no name of ours"):
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


def test_left_over_processes_are_ended(state: Path) -> None:
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as sleeper:
        with Journal.create("run-1", "a test") as journal:
            journal.own_process_group(sleeper.pid)
        assert sleeper.wait(timeout=10) == -signal.SIGKILL


def test_a_process_group_number_that_was_used_again_is_left_alone(state: Path) -> None:
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as sleeper:
        entry = {"kind": "process_group", "group": sleeper.pid, "started_ticks": 10**15}
        _dead_journal(state, "run-1", [entry])
        raise_for_failures(recover(state))
        assert sleeper.poll() is None
        sleeper.kill()


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
    assert not list((state / "journal").iterdir())


def test_a_keyboard_interrupt_in_the_midst_of_restoring(
    state: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where signals are not turned into exceptions: it breaks restoring off, which is then repeated."""
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


def test_sysfs_attribute_comes_back(make_loop: LoopMaker, state: Path) -> None:
    path = make_loop(16).sys_path / "queue" / "read_ahead_kb"
    before = path.read_text()
    with Journal.create("run-1", "a test") as journal:
        assert journal.protect_attribute(path) == before
        path.write_text("64")
    assert path.read_text() == before


@pytest.mark.root
def test_a_killed_run_is_finished(make_loop: LoopMaker, state: Path) -> None:
    disk = make_loop(32)
    set_scheduler(disk, "mq-deadline")
    write_attribute(disk, "iosched/fifo_batch", "5")
    before = queue_of(disk)
    path = _die_with_journal(state, disk, "dead")
    assert read_attribute(disk, "scheduler") == "bfq"
    assert stale_journals(state) == [path]
    (planned,) = preview(state)
    assert f"{disk.name}: scheduler = mq-deadline" in planned.done
    assert changed(before, queue_of(disk)), "a preview changes nothing"
    (report,) = recover(state)
    assert report.error is None
    assert report.run_id == "dead"
    assert f"{disk.name}: scheduler = mq-deadline" in report.done
    assert not changed(before, queue_of(disk))
    assert recover(state) == []


@pytest.mark.root
def test_of_two_killed_runs_the_older_state_wins(make_loop: LoopMaker, state: Path) -> None:
    disk = make_loop(32)
    set_scheduler(disk, "mq-deadline")
    before = queue_of(disk)
    first = _die_with_journal(state, disk, "b-first")
    os.utime(first)
    # The second run starts a second later, and so finds bfq.
    data = first.read_bytes().replace(b'"started_at":"20', b'"started_at":"19')
    lines, checksum = b"", ""
    for line in data.splitlines():
        encoded, checksum = encode_line(json.loads(line[9:]), checksum)
        lines += encoded
    first.write_bytes(lines)
    _die_with_journal(state, disk, "a-second")
    assert [report.run_id for report in recover(state)] == ["a-second", "b-first"]
    assert not changed(before, queue_of(disk))


@pytest.mark.root
def test_torn_last_line(make_loop: LoopMaker, state: Path) -> None:
    disk = make_loop(32)
    before = queue_of(disk)
    path = _die_with_journal(state, disk, "dead")
    whole = path.read_bytes()
    line, _ = encode_line({"kind": "file", "number": 2, "path": "/x"}, "")
    for torn in (line[:1], line[:30], line[:-1], b"\0" * 100):
        path.write_bytes(whole + torn)
        (report,) = recover(state)
        assert report.error is None, torn
        assert not changed(before, queue_of(disk))
        set_scheduler(disk, "bfq")
    assert not path.exists()


def test_a_journal_torn_at_any_byte_is_read_as_far_as_it_goes(state: Path) -> None:
    path = _dead_journal(
        state, "dead", [{"kind": "file", "path": f"/x/{n}", "parent_inode": 1} for n in range(3)]
    )
    data = path.read_bytes()
    ends = [position + 1 for position, byte in enumerate(data) if byte == 10]
    for length in range(len(data) + 1):
        content = decode(data[:length])
        assert content.damage is None, length
        assert len(content.entries) == sum(1 for end in ends if end <= length)


@pytest.mark.root
def test_corrupt_journal(make_loop: LoopMaker, state: Path) -> None:
    disk = make_loop(32)
    before = queue_of(disk)
    path = _die_with_journal(state, disk, "dead")
    good = path.read_bytes()
    more, _ = encode_line(
        {"kind": "file", "number": 2, "path": "/x", "parent_inode": 1}, f"{zlib.crc32(b'?'):08x}"
    )
    damaged = good + more
    path.write_bytes(damaged)
    (report,) = recover(state)
    assert isinstance(report.error, JournalError)
    assert "line 3 is damaged" in report.error.message
    assert "--force" in str(report.error.hint)
    assert path.read_bytes() == damaged, "nothing of it is lost"
    assert read_attribute(disk, "scheduler") == "bfq", "nothing was changed"
    with pytest.raises(JournalError):
        raise_for_failures([report])
    (report,) = recover(state, force=True)
    assert report.error is None
    assert not changed(before, queue_of(disk))
    assert path.with_suffix(".damaged").read_bytes() == damaged
    assert recover(state) == []


def test_damage_is_noticed_wherever_it_is(state: Path) -> None:
    path = _dead_journal(
        state, "dead", [{"kind": "file", "path": f"/x/{n}", "parent_inode": 1} for n in range(4)]
    )
    data = path.read_bytes()
    lines = data.splitlines(keepends=True)
    for position in range(0, len(data) - len(lines[-1]), 7):
        flipped = data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]
        assert decode(flipped).damage is not None, position
    assert decode(b"".join([*lines[:2], *lines[3:]])).damage, "a line was taken out"
    assert decode(b"".join([lines[0], lines[2], lines[1], *lines[3:]])).damage, "lines changed places"


def test_a_journal_of_another_version(state: Path) -> None:
    path = _dead_journal(state, "dead", [])
    line, _ = encode_line({"kind": "header", "version": 99}, "")
    path.write_bytes(line)
    (report,) = recover(state)
    assert isinstance(report.error, JournalError)
    assert "format 99" in report.error.message


def test_an_entry_that_makes_no_sense(state: Path) -> None:
    _dead_journal(state, "dead", [{"kind": "queue"}])
    (report,) = recover(state)
    assert isinstance(report.error, JournalError)
    assert "makes no sense" in report.error.message
    assert preview(state)[0].error is not None


def test_an_empty_journal_says_that_nothing_had_begun(state: Path) -> None:
    path = _dead_journal(state, "dead", [])
    path.write_bytes(b"")
    (report,) = recover(state)
    assert report.error is None
    assert not path.exists()


def test_a_journal_of_somebody_else_is_not_obeyed(state: Path, needs_root: None, scratch: Path) -> None:
    victim = scratch / "precious"
    victim.touch()
    entry = {"kind": "file", "path": str(victim), "parent_inode": scratch.stat().st_ino}
    path = _dead_journal(state, "dead", [entry])
    os.chown(path, 65534, 65534)
    (report,) = recover(state)
    assert isinstance(report.error, JournalError)
    assert victim.exists()


@pytest.mark.root
def test_a_disk_that_is_another_one_now(make_loop: LoopMaker, state: Path, scratch: Path) -> None:
    disk = make_loop(32)
    path = _die_with_journal(state, disk, "dead")
    remove_loop(int(disk.name.removeprefix("loop")))
    subprocess.run(["losetup", disk.dev_path, scratch / f"image-{disk.name[4:]}"], check=True)
    set_scheduler(disk, "kyber")
    (report,) = recover(state)
    assert report.error is None
    assert report.notes == [f"{disk.name} is another disk now (diskseq differ): left alone"]
    assert read_attribute(disk, "scheduler") == "kyber"
    assert not path.exists()


@pytest.mark.root
def test_a_loop_device_that_is_gone(make_loop: LoopMaker, state: Path) -> None:
    disk = make_loop(32)
    _die_with_journal(state, disk, "dead")
    remove_loop(int(disk.name.removeprefix("loop")))
    (report,) = recover(state)
    assert report.error is None
    assert report.notes == [f"{disk.name} is gone, and its settings with it"]


@pytest.mark.root
def test_after_a_restart_of_the_machine_only_files_are_removed(
    make_loop: LoopMaker, state: Path, scratch: Path
) -> None:
    """The restart is simulated by a header that names another boot."""
    disk = make_loop(32)
    set_scheduler(disk, "bfq")
    left = scratch / "left"
    left.touch()
    queue = {
        "kind": "queue",
        "disk": identity_of(disk),
        "snapshot": {"scheduler": "none", "attributes": {}},
    }
    file = {"kind": "file", "path": str(left), "parent_inode": scratch.stat().st_ino}
    _dead_journal(state, "dead", [queue, file], boot_id="another")
    (report,) = recover(state)
    assert report.error is None
    assert report.done == [f"removed {left}"]
    assert "restarted" in report.notes[0]
    assert read_attribute(disk, "scheduler") == "bfq"


def test_a_file_system_that_is_not_mounted_now(state: Path, scratch: Path) -> None:
    mount_point = scratch / "mount-point"
    mount_point.mkdir()
    entry = {"kind": "directory", "path": str(mount_point / ".blklab-x"), "parent_inode": 2}
    path = _dead_journal(state, "dead", [entry])
    (report,) = recover(state)
    assert isinstance(report.error, RestoreError)
    assert "mounted" in report.error.message
    assert path.exists()
    (report,) = recover(state, force=True)
    assert report.error is None
    assert "given up" in report.notes[0]
    assert not path.exists()


def test_a_living_run_is_left_alone(state: Path, scratch: Path) -> None:
    with Journal.create("alive", "a test") as journal:
        folder = journal.own_directory(scratch / ".blklab-alive")
        assert recover(state) == []
        assert folder.exists()


@pytest.mark.root
def test_recovery_waits_for_a_living_run_on_the_same_disk(make_loop: LoopMaker, state: Path) -> None:
    disk = make_loop(32)
    path = _die_with_journal(state, disk, "dead")
    holder = (
        "import sys\nfrom blklab.linux.disks import resolve\nfrom blklab.linux.locks import disk_locks\n"
        "with disk_locks(resolve(sys.argv[1]).leaves, run_id='other'):\n"
        "    print('held', flush=True); sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", holder, str(disk.dev_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        (report,) = recover(state)
        process.communicate()
    assert isinstance(report.error, LockedError)
    assert path.exists()
    with disk_locks([disk], run_id="us"):
        (report,) = recover(state)
    assert report.error is None, "our own lock is no obstacle"


@pytest.mark.root
def test_own_loop_device(needs_loop: None, state: Path, scratch: Path) -> None:
    devices = sorted(path.name for path in Path("/sys/block").iterdir())
    with Journal.create("run-1", "a test") as journal:
        image = journal.own_file(scratch / "image")
        with image.open("wb") as file:
            file.truncate(32 << 20)
        disk = loop.create(journal, image)
        assert disk.name not in devices
        assert disk.size_bytes == 32 << 20
        assert (disk.sys_path / "loop" / "dio").read_text() == "1\n"
        journal.protect_queue(disk)
        set_scheduler(disk, "bfq")
        second = journal.own_file(scratch / "second")
        with second.open("wb") as file:
            file.truncate(16 << 20)
        other = loop.create(journal, second)
        loop.detach(journal, other)
        assert not other.sys_path.exists()
    assert not disk.sys_path.exists()
    assert not image.exists()


@pytest.mark.root
def test_own_loop_device_over_nothing(needs_loop: None, state: Path, scratch: Path) -> None:
    with pytest.raises(FileNotFoundError), Journal.create("run-1", "a test") as journal:
        loop.create(journal, scratch / "gone")


@pytest.mark.root
def test_a_loop_number_that_was_given_to_another_file_is_left_alone(
    make_loop: LoopMaker, state: Path, scratch: Path
) -> None:
    disk = make_loop(16)
    index = int(disk.name.removeprefix("loop"))
    _dead_journal(state, "dead", [{"kind": "loop", "index": index, "backing_file": str(scratch / "else")}])
    raise_for_failures(recover(state))
    assert (disk.sys_path / "loop").exists()
