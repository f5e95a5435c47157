"""Journals of killed runs: the next start finishes them, and never trusts them blindly."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from dead_journals import dead_journal, die_with_journal

from blklab.errors import JournalError, LockedError, RestoreError
from blklab.linux.journal.file import decode, encode_line
from blklab.linux.journal.locks import disk_locks
from blklab.linux.journal.recovery import preview, raise_for_failures, recover, stale_journals
from blklab.linux.journal.undo import identity_of
from blklab.linux.queue.attributes import read_attribute, write_attribute
from blklab.linux.queue.schedulers import set_scheduler
from real_devices import (
    LoopMaker,
    attach_again,
    backing_of,
    changed,
    number_of,
    queue_of,
    remove_disk,
)


@pytest.mark.root
def test_a_killed_run_is_finished(make_loop: LoopMaker, state: Path) -> None:
    disk = make_loop(32)
    set_scheduler(disk, "mq-deadline")
    write_attribute(disk, "iosched/fifo_batch", "5")
    before = queue_of(disk)
    path = die_with_journal(state, disk, "dead")
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
    first = die_with_journal(state, disk, "b-first")
    os.utime(first)
    # The second run starts a second later, and so finds bfq.
    data = first.read_bytes().replace(b'"started_at":"20', b'"started_at":"19')
    lines, checksum = b"", ""
    for line in data.splitlines():
        encoded, checksum = encode_line(json.loads(line[9:]), checksum)
        lines += encoded
    first.write_bytes(lines)
    die_with_journal(state, disk, "a-second")
    assert [report.run_id for report in recover(state)] == ["a-second", "b-first"]
    assert not changed(before, queue_of(disk))


_TORN = (b"6", b'6a3f0e11 {"kind":"file"', b"6a3f0e11 {" + b"\0" * 90, b"\0" * 100, b"\0" * 5000)


@pytest.mark.parametrize("torn", _TORN)
def test_a_line_torn_by_a_power_cut_is_no_damage(state: Path, scratch: Path, torn: bytes) -> None:
    """The boot is another one then. The change that the line announces had not been made yet."""
    left = scratch / "left"
    left.touch()
    file = {"kind": "file", "path": str(left), "parent_inode": scratch.stat().st_ino}
    path = dead_journal(state, "dead", [file], boot_id="another")
    path.write_bytes(path.read_bytes() + torn)
    (report,) = recover(state)
    assert report.error is None
    assert not left.exists()
    assert list((state / "journal").glob("dead*")) == []


@pytest.mark.root
@pytest.mark.parametrize("torn", _TORN)
def test_within_a_boot_nothing_tears_a_line(make_loop: LoopMaker, state: Path, torn: bytes) -> None:
    disk = make_loop(32)
    before = queue_of(disk)
    path = die_with_journal(state, disk, "dead")
    cut = path.read_bytes() + torn
    path.write_bytes(cut)
    (report,) = recover(state)
    assert isinstance(report.error, JournalError)
    assert "was damaged: line 3" in report.error.message
    assert not changed(before, queue_of(disk))
    assert path.with_suffix(".damaged").read_bytes() == cut


def _real_journal(state: Path, scratch: Path) -> tuple[Path, bytes, list[Path]]:
    """A journal of this boot with entries of many kinds, and the files that undoing it removes."""
    made = [scratch / f"made-{number}" for number in range(3)]
    entries = [{"kind": "file", "path": str(file), "parent_inode": scratch.stat().st_ino} for file in made]
    queue = {"kind": "queue", "disk": {"sys_path": "/sys/block/none-such", "name": "none-such"}}
    mount: dict[str, object] = {"kind": "mount", "path": str(scratch / ".blklab-dead" / "none")}
    entries[1:1] = [{**queue, "snapshot": {"scheduler": "none", "attributes": {"nr_requests": "64"}}}, mount]
    path = dead_journal(state, "dead", entries)
    return path, path.read_bytes(), made


def _recovered(state: Path, path: Path, data: bytes, made: list[Path]) -> tuple[JournalError | None, int]:
    """Recovers from a journal with these bytes: its error, and how many of the files were removed."""
    for old in (state / "journal").glob("dead*"):
        old.unlink()
    for file in made:
        file.touch()
    path.write_bytes(data)
    path.chmod(0o600)
    (report,) = recover(state)
    assert report.error is None or isinstance(report.error, JournalError), report.error
    kept = [file.read_bytes() for file in (state / "journal").glob("dead*")]
    assert kept == ([] if report.error is None else [data]), "kept if and only if that is said"
    assert not path.exists(), "it is not in the way of the next start"
    return report.error, sum(not file.exists() for file in made)


def test_a_journal_cut_at_any_byte_is_kept_and_undone_as_far_as_it_goes(state: Path, scratch: Path) -> None:
    """Only a cut between two lines cannot be noticed, and an empty file has nothing to tell."""
    path, data, made = _real_journal(state, scratch)
    ends = [position + 1 for position, byte in enumerate(data) if byte == 10]
    files = [number for number, line in enumerate(data.splitlines()) if b"/made-" in line]
    for length in range(len(data) + 1):
        error, removed = _recovered(state, path, data[:length], made)
        intact = sum(end <= length for end in ends)
        assert removed == sum(number < intact for number in files), length
        assert (error is None) == (length in (0, *ends)), length


def test_a_journal_with_random_bytes_is_kept_and_undone_as_far_as_it_goes(
    state: Path, scratch: Path, seed: int
) -> None:
    chance = random.Random(seed)  # noqa: S311 - not for secrets
    path, data, made = _real_journal(state, scratch)
    for _ in range(200):
        start = chance.randrange(len(data))
        length = chance.choice([1, 2, 16, 512, len(data)])
        noise = chance.choice([chance.randbytes(length), bytes(length)])
        damaged = (data[:start] + noise + data[start + length :])[: chance.choice([len(data), 10**6])]
        if damaged == data or not damaged.strip(b"\0"):
            continue
        error, removed = _recovered(state, path, damaged, made)
        assert error is not None, (start, length)
        intact = data[:start].count(b"\n")
        assert removed >= sum(b"/made-" in line for line in data.splitlines()[:intact]), (start, length)


@pytest.mark.parametrize("size", [1, 30, 700, 100_000])
def test_bytes_that_are_no_journal_are_kept(state: Path, scratch: Path, seed: int, size: int) -> None:
    path, _, made = _real_journal(state, scratch)
    noise = random.Random(seed).randbytes(size).replace(b"\0", b"x").replace(b"\n", b"x")  # noqa: S311
    for data in (noise, bytes(size) if size > 4096 else noise):
        error, removed = _recovered(state, path, data, made)
        assert error is not None
        assert "line 1 is damaged" in error.message
        assert removed == 0


@pytest.mark.parametrize("size", [0, 200])
def test_a_journal_without_a_byte_says_that_nothing_had_begun(state: Path, scratch: Path, size: int) -> None:
    """A file system that was cut off may know the length of what it has not written."""
    path, _, made = _real_journal(state, scratch)
    assert _recovered(state, path, bytes(size), made) == (None, 0)


def test_several_damaged_journals_of_one_name_are_all_kept(state: Path) -> None:
    for text in (b"one", b"two", b"three"):
        path = dead_journal(state, "dead", [])
        path.write_bytes(text)
        (report,) = recover(state)
        assert report.error is not None
    kept = {file.read_bytes() for file in (state / "journal").glob("dead*.damaged")}
    assert kept == {b"one", b"two", b"three"}


@pytest.mark.parametrize("kind", ["link", "dangling link", "directory", "fifo"])
def test_what_is_no_regular_file_is_refused_by_name(state: Path, scratch: Path, kind: str) -> None:
    path = state / "journal" / "dead.journal"
    target = dead_journal(state, "target", [{"kind": "file", "path": str(scratch), "parent_inode": 1}])
    elsewhere = target.rename(scratch / "elsewhere")
    match kind:
        case "link":
            path.symlink_to(elsewhere)
        case "dangling link":
            path.symlink_to(scratch / "nowhere")
        case "directory":
            path.mkdir()
        case _:
            os.mkfifo(path, 0o600)
    assert stale_journals(state) == [path]
    for reports in (recover(state), preview(state), recover(state, force=True)):
        (report,) = reports
        assert isinstance(report.error, JournalError)
        assert f"{path} is no regular file" in report.error.message
    assert os.path.lexists(path)
    assert elsewhere.exists()


@pytest.mark.root
def test_corrupt_journal(make_loop: LoopMaker, state: Path) -> None:
    disk = make_loop(32)
    before = queue_of(disk)
    path = die_with_journal(state, disk, "dead")
    good = path.read_bytes()
    more, _ = encode_line(
        {"kind": "file", "number": 2, "path": "/x", "parent_inode": 1}, f"{zlib.crc32(b'?'):08x}"
    )
    damaged = good + more
    path.write_bytes(damaged)
    (planned,) = preview(state)
    assert "line 3 is damaged" in planned.notes[0]
    assert path.read_bytes() == damaged
    assert read_attribute(disk, "scheduler") == "bfq", "a preview changes nothing"
    (report,) = recover(state)
    assert isinstance(report.error, JournalError)
    assert "line 3 is damaged" in report.error.message
    with pytest.raises(JournalError):
        raise_for_failures([report])
    assert not changed(before, queue_of(disk))
    assert path.with_suffix(".damaged").read_bytes() == damaged, "nothing of it is lost"
    assert recover(state) == []


def test_damage_is_noticed_wherever_it_is(state: Path) -> None:
    path = dead_journal(
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
    path = dead_journal(state, "dead", [])
    line, _ = encode_line({"kind": "header", "version": 99}, "")
    path.write_bytes(line)
    (report,) = recover(state)
    assert isinstance(report.error, JournalError)
    assert "format 99" in report.error.message
    assert path.read_bytes() == line
    (report,) = recover(state, force=True)
    assert report.error is None
    assert path.with_suffix(".damaged").read_bytes() == line


def test_an_entry_that_makes_no_sense(state: Path) -> None:
    dead_journal(state, "dead", [{"kind": "queue"}])
    (report,) = recover(state)
    assert isinstance(report.error, JournalError)
    assert "malformed entry" in report.error.message
    assert preview(state)[0].error is not None


def test_a_journal_of_somebody_else_is_not_obeyed(state: Path, needs_root: None, scratch: Path) -> None:
    victim = scratch / "precious"
    victim.touch()
    entry = {"kind": "file", "path": str(victim), "parent_inode": scratch.stat().st_ino}
    path = dead_journal(state, "dead", [entry])
    os.chown(path, 65534, 65534)
    (report,) = recover(state)
    assert isinstance(report.error, JournalError)
    assert victim.exists()


@pytest.mark.root
def test_a_disk_that_is_another_one_now(make_loop: LoopMaker, state: Path, scratch: Path) -> None:
    disk = make_loop(32)
    path = die_with_journal(state, disk, "dead")
    number = number_of(disk)
    image = Path(backing_of(number) or "")
    remove_disk(disk)
    attach_again(number, image)
    set_scheduler(disk, "kyber")
    (report,) = recover(state)
    assert report.error is None
    assert report.notes == [f"{disk.name} is now another disk (diskseq differ): not touched"]
    assert read_attribute(disk, "scheduler") == "kyber"
    assert not path.exists()


@pytest.mark.root
def test_a_loop_device_that_is_gone(make_loop: LoopMaker, state: Path) -> None:
    disk = make_loop(32)
    die_with_journal(state, disk, "dead")
    remove_disk(disk)
    (report,) = recover(state)
    assert report.error is None
    assert report.notes == [f"{disk.name} is gone, and so are its settings"]


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
    dead_journal(state, "dead", [queue, file], boot_id="another")
    (report,) = recover(state)
    assert report.error is None
    assert report.done == [f"removed {left}"]
    assert "rebooted" in report.notes[0]
    assert read_attribute(disk, "scheduler") == "bfq"


def test_a_file_system_that_is_not_mounted_now(state: Path, scratch: Path) -> None:
    mount_point = scratch / "mount-point"
    mount_point.mkdir()
    entry = {"kind": "directory", "path": str(mount_point / ".blklab-x"), "parent_inode": 2}
    path = dead_journal(state, "dead", [entry])
    (report,) = recover(state)
    assert isinstance(report.error, RestoreError)
    assert "mounted" in report.error.message
    assert path.exists()
    (report,) = recover(state, force=True)
    assert report.error is None
    assert "given up" in report.notes[0]
    assert not path.exists()


@pytest.mark.root
def test_recovery_waits_for_a_living_run_on_the_same_disk(make_loop: LoopMaker, state: Path) -> None:
    disk = make_loop(32)
    path = die_with_journal(state, disk, "dead")
    holder = (
        "import sys\nfrom blklab.linux.disks.resolution import resolve\n"
        "from blklab.linux.journal.locks import disk_locks\n"
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
def test_recovery_may_be_killed_and_done_again(make_loop: LoopMaker, state: Path) -> None:
    disk = make_loop(32)
    set_scheduler(disk, "mq-deadline")
    write_attribute(disk, "iosched/fifo_batch", "5")
    before = queue_of(disk)
    path = die_with_journal(state, disk, "dead")
    program = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from blklab.linux.journal.recovery import recover\n"
        "from blklab.linux.queue import schedulers, snapshot\n"
        "real, left = snapshot.write_once, [int(sys.argv[2])]\n"
        "def write(path, value):\n"
        "    if not left[0]:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    left[0] -= 1\n"
        "    real(path, value)\n"
        "schedulers.write_once = snapshot.write_once = write\n"
        "recover(Path(sys.argv[1]))\n"
    )
    for writes in range(3):  # the scheduler, and one tunable: the third attempt gets through
        ended = subprocess.run([sys.executable, "-c", program, str(state), str(writes)], check=False)
        assert ended.returncode == (-signal.SIGKILL if writes < 2 else 0)
        if writes == 0:
            assert path.exists()
            assert read_attribute(disk, "scheduler") == "bfq"
        elif writes == 1:
            assert path.exists()
            assert changed(before, queue_of(disk))
            set_scheduler(disk, "bfq")
    assert not changed(before, queue_of(disk))
    assert not path.exists()


@pytest.mark.root
def test_two_starts_at_once_recover_once(make_loop: LoopMaker, state: Path) -> None:
    disk = make_loop(32)
    set_scheduler(disk, "mq-deadline")
    before = queue_of(disk)
    program = (
        "import sys\nfrom pathlib import Path\nfrom blklab.linux.journal.recovery import recover\n"
        "sys.stdin.readline()\nprint([report.done for report in recover(Path(sys.argv[1]))])\n"
    )
    for round_number in range(5):
        die_with_journal(state, disk, f"dead-{round_number}")
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", program, str(state)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for _ in range(3)
        ]
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        answers = [process.communicate()[0].strip() for process in processes]
        assert sorted(answer != "[]" for answer in answers) == [False, False, True], answers
        assert not changed(before, queue_of(disk))


def test_drafts_of_killed_runs_are_swept(state: Path) -> None:
    folder = state / "journal"
    folder.mkdir(parents=True)
    (folder / ".run-1.99999999.new").touch()
    (folder / f".run-2.{os.getpid()}.new").touch()
    assert recover(state) == []
    assert [path.name for path in folder.glob(".*.new")] == [f".run-2.{os.getpid()}.new"]


@pytest.mark.root
def test_a_loop_number_that_was_given_to_another_file_is_left_alone(
    make_loop: LoopMaker, state: Path, scratch: Path
) -> None:
    disk = make_loop(16)
    index = int(disk.name.removeprefix("loop"))
    dead_journal(state, "dead", [{"kind": "loop", "index": index, "backing_file": str(scratch / "else")}])
    raise_for_failures(recover(state))
    assert (disk.sys_path / "loop").exists()
