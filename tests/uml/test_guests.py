"""Guests that fail: each failure has its own message, with the end of the log, and nothing is left behind."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections import namedtuple
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from blklab.errors import RequirementError, RunFailedError, SpaceError
from blklab.guests import process, scratch
from blklab.guests.boot import Boot
from blklab.guests.guest import GuestImage, Guests
from blklab.guests.log import failure_reason, log_tail
from blklab.guests.programs import program_files
from blklab.guests.scratch import SessionFolder, choose_scratch, remove_stale_folders
from waiting import PATIENCE_SECONDS, wait_until

Usage = namedtuple("Usage", "total used free")


def processes_in(folder: Path) -> list[int]:
    """Processes whose working folder is `folder` or lies in it."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            place = (entry / "cwd").readlink()
        except OSError:
            continue
        if place.is_relative_to(folder):
            found.append(int(entry.name))
    return found


@pytest.fixture
def place(guests: Guests) -> Iterator[Path]:
    """The session's folder; when the test ends, no process may be left in it."""
    folder = guests._scratch.path
    yield folder
    assert processes_in(folder) == []
    assert not list(folder.glob("run-*"))


@pytest.mark.parametrize(
    ("deed", "reason"),
    [
        ("panic", "panicked: Attempted to kill init! exitcode=0x00000100"),
        ("fill the memory", "ran out of memory (give it more with --memory)"),
        ("talk", "said more than 1.00 MiB"),
        ("leave without a word", "ended without an answer (exit code 0)"),
        ("write half an answer", "answer cannot be read"),
    ],
)
def test_a_guest_that_fails_says_why(
    guests: Guests, image: GuestImage, place: Path, deed: str, reason: str
) -> None:
    end = guests.run(image, {"deed": deed}, {})
    assert end.answer is None
    assert end.error is not None
    assert reason in end.error
    assert "its log" in end.error
    assert "[<" not in end.error  # no stack


@pytest.mark.parametrize("deed", ["loop without calls", "loop with calls", "sleep for ever"])
def test_a_guest_that_hangs_is_ended(impatient: Guests, image: GuestImage, deed: str) -> None:
    end = impatient.run(image, {"deed": deed}, {})
    assert end.error is not None
    assert end.error.startswith("the guest hangs: no sign of progress for 1.50 s; its log")
    assert processes_in(impatient._scratch.path) == []
    assert not list(impatient._scratch.path.glob("run-*"))


def test_the_rest_goes_on_after_a_failure(guests: Guests, image: GuestImage, place: Path) -> None:
    assert guests.run(image, {"deed": "panic"}, {}).answer is None
    assert guests.run(image, {"deed": "nothing"}, {}).answer is not None


def test_nothing_of_this_machine_gets_in(guests: Guests, image: GuestImage, place: Path) -> None:
    """Random numbers, the clock and addresses depend on the boot alone; files are the guest's own."""
    first = guests.run(image, {"deed": "nothing"}, {})
    time.sleep(0.01)
    second = guests.run(image, {"deed": "nothing"}, {})
    assert first.answer is not None
    assert first.answer == second.answer
    assert first.answer["sees_etc"] == 0
    assert first.answer["clock_ns"] // 10**9 == 10**9


def test_in_host_time_the_clock_is_this_machines(image: GuestImage) -> None:
    place, _ = choose_scratch(128 << 20)
    with Guests(place, Boot(128 << 20, virtual_time=False)) as session:
        answer = session.run(image, {"deed": "nothing"}, {}).answer
    assert answer is not None
    assert abs(answer["clock_ns"] / 1e9 - time.time()) < 3600


def test_stopping_ends_a_guest_of_another_thread(guests: Guests, image: GuestImage, place: Path) -> None:
    failures: list[BaseException] = []

    def run() -> None:
        try:
            guests.run(image, {"deed": "loop without calls"}, {})
        except RunFailedError as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    wait_until(lambda: any(_name(pid) == "linux" for pid in processes_in(place)), "the kernel runs")
    guests.stop()
    thread.join(PATIENCE_SECONDS)
    assert not thread.is_alive()
    assert "stopped" in str(failures[0])
    with pytest.raises(RunFailedError, match="stopped"):
        guests.run(image, {"deed": "nothing"}, {})


def test_children_of_a_killed_kernel_do_not_run_on_here(image: GuestImage) -> None:
    """Killed alone, the kernel's process lets its children go: the supervisor must kill them."""
    place, _ = choose_scratch(128 << 20)
    with Guests(place, Boot(128 << 20)) as session:
        folder = session._scratch.path
        ends: list[str | None] = []
        thread = threading.Thread(
            target=lambda: ends.append(session.run(image, {"deed": "loop without calls"}, {}).error)
        )
        thread.start()
        kernels: list[int] = []

        def running() -> bool:
            kernels[:] = [pid for pid in processes_in(folder) if _name(pid) == "linux"]
            return len(kernels) >= 2

        wait_until(running, "the kernel runs, and the one address space of its first process")
        main = next(pid for pid in kernels if _parent(pid) not in kernels)
        os.kill(main, 9)
        thread.join(PATIENCE_SECONDS)
        assert ends[0] is not None
        assert "exit code 137" in ends[0]
        assert not any(Path(f"/proc/{pid}").exists() for pid in kernels)


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_as_root_a_guest_has_no_capabilities(guests: Guests, image: GuestImage, place: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to drop capabilities")
    found: list[str] = []

    def run() -> None:
        with suppress(RunFailedError):  # that it was stopped
            guests.run(image, {"deed": "loop without calls"}, {})

    def kernel_seen() -> bool:
        for pid in processes_in(place):
            if _name(pid) == "linux":
                status = Path(f"/proc/{pid}/status").read_text().splitlines()
                names = ("CapEff", "CapBnd", "CapPrm")
                found[:] = [line.split()[1] for line in status if line.startswith(names)]
        return bool(found)

    thread = threading.Thread(target=run)
    thread.start()
    wait_until(kernel_seen, "the kernel runs")
    guests.stop()
    thread.join(PATIENCE_SECONDS)
    assert [int(value, 16) for value in found] == [0, 0, 0]


def test_no_room_is_said_beforehand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(64 << 20, 0, 64 << 20))
    with pytest.raises(SpaceError, match="a guest needs 560 MiB for its memory and programs") as caught:
        choose_scratch(512 << 20)
    assert caught.value.hint is not None
    assert "BLKLAB_SCRATCH" in caught.value.hint


def test_a_full_folder_is_an_error_of_room(
    guests: Guests, image: GuestImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: Path, copy: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(SpaceError, match="No space left on device"):
        guests.run(image, {"deed": "nothing"}, {})


def test_a_scratch_place_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(scratch.SCRATCH_VARIABLE, "/nonexistent")
    with pytest.raises(RequirementError, match="/nonexistent"):
        choose_scratch(1)


def test_what_a_killed_session_left_is_removed(tmp_path: Path) -> None:
    dead, living = SessionFolder(tmp_path), SessionFolder(tmp_path)
    os.close(dead._lock)  # as the end of its process would
    remove_stale_folders(tmp_path)
    assert (dead.path.exists(), living.path.exists()) == (False, True)
    living.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_machine_that_refuses_is_told_from_a_guest_that_fails(
    guests: Guests, image: GuestImage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    refusing = tmp_path / "supervisor.py"
    text = process._SUPERVISOR.read_text(encoding="utf-8")
    refusing.write_text(text.replace("    _confine()", "    raise OSError(1, 'personality: not permitted')"))
    monkeypatch.setattr(process, "_SUPERVISOR", refusing)
    with pytest.raises(RequirementError, match="personality: not permitted"):
        guests.run(image, {"deed": "nothing"}, {})


def test_programs_come_with_their_libraries(tmp_path: Path) -> None:
    files = program_files(["sh"])
    assert files["bin/sh"].is_file()
    assert any("ld-" in name or "libc" in name for name in files)
    assert all(path.is_file() for path in files.values())


def test_the_reason_is_found_in_the_log() -> None:
    log = (
        "[    1.000000] mounted\n[    1.000000] mounted\n"
        "[    2.500000] Kernel panic - not syncing: VFS: Unable to mount root fs\n"
        "[    2.500000] CPU: 0 PID: 1 Comm: swapper Not tainted 6.1.192 #1 \n[    2.500000] Call Trace:\n"
        "[    2.500000]  [<604a9d15>] ? _printk+0x0/0x9b\n"
    )
    assert failure_reason(log) == "the guest's kernel panicked: VFS: Unable to mount root fs"
    assert log_tail(log) == "mounted | Kernel panic - not syncing: VFS: Unable to mount root fs"
    assert failure_reason("all well") is None
    assert json.dumps(log_tail("")) == '""'
