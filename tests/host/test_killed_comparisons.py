"""Comparisons that are killed at random moments: every setting is byte for byte as before.

Half of the kills are SIGKILL, after which `blklab restore` has to restore the settings; after the other
signals blklab itself does.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from blklab.linux.disks.disk import Disk
from blklab.linux.queue.attributes import write_attribute
from blklab.linux.queue.schedulers import set_scheduler
from host.conftest import Filesystem, LoopDevice
from real_devices import changed, own_loops, queue_of
from waiting import PATIENCE_SECONDS, wait_until

BLKLAB = [sys.executable, "-m", "blklab"]
JOB = "[mixed]\nrw=randrw\nbs=4k\ndirect=1\nioengine=libaio\niodepth=8\nsize=16m\ntime_based\nruntime=200ms\n"
QUESTION = [
    "-w", "mixed.fio", "-s", "none,mq-deadline:fifo_batch=4,kyber,bfq", "--queue", "nomerges=1",
    "-q", "--json", "-",
]  # fmt: skip


@dataclass(frozen=True)
class Design:
    """Arguments of comparisons, and how long one waits before it kills them."""

    short: list[str]
    endless: list[str]
    """A comparison that does not end before it is killed."""
    longest_wait_seconds: float
    """Long enough that moments fall into every phase."""
    question: tuple[str, ...] = tuple(QUESTION)
    loop: str = "loop:32m"


RUNS = Design(["--blocks", "2"], ["--blocks", "100000"], 3.0)
SWITCHBACK = Design(
    ["--design", "switchback", "--budget", "1blocks"], ["--design", "switchback", "--budget", "10h"], 20.0
)
"""Its pilot takes 13 seconds, with a switch every second; then slots are shorter."""
COMMANDS = Design(
    ["--blocks", "2"],
    ["--blocks", "100000"],
    8.0,
    (
        "--command", "cat data data > copy; cat copy | wc -c; sleep 0.1",
        "--set-up", "head -c 4194304 /dev/urandom > data", "--repeat-set-up", "rm -f copy",
        "--cold", "--space", "32m", "--beside", "mixed.fio",
        "-s", "none,mq-deadline:fifo_batch=4,bfq", "--queue", "nomerges=1", "-q", "--json", "-",
    ),
    "loop:64m",
)  # fmt: skip
"""File systems are made, mounted and unmounted all the time, beside fio."""


def _prepared(disk: Disk) -> Disk:
    """A disk whose settings are not the kernel's defaults, so resetting to those would fail the test."""
    set_scheduler(disk, "mq-deadline")
    for name, value in (("nr_requests", "100"), ("iosched/fifo_batch", "7"), ("read_ahead_kb", "96")):
        write_attribute(disk, name, value)
    return disk


def _processes_with(variable: bytes) -> list[int]:
    """Processes that have a variable in their environment, as all that a comparison starts inherit it."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if variable in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found


def _kill_comparisons(
    count: int, folder: Path, disks: list[Disk], working_folder: Path, seed: int, design: Design = RUNS
) -> None:
    """Kills comparisons of a folder, and of a loop device over a file in it.

    Args:
        count: How many.
        folder: On a file system on one of the disks.
        disks: All created by the test.
        working_folder: Holds the job file, the store and the state.
        seed: Decides targets, moments and signals.
        design: Of the comparisons.
    """
    state = working_folder / "state"
    environment = {
        **os.environ,
        "BLKLAB_STATE_DIR": str(state),
        "XDG_DATA_HOME": str(working_folder / "data"),
    }
    ours = f"BLKLAB_STATE_DIR={state}".encode()
    (working_folder / "mixed.fio").write_text(JOB)
    chance = random.Random(seed)  # noqa: S311 - not for secrets
    for number in range(count):
        target = chance.choice([str(folder), f"{design.loop},dir={folder}"])
        # Either at any moment, from the start of Python to the end; or surely while settings are changed.
        midst = chance.random() < 0.5
        how = chance.choice([signal.SIGKILL] * 3 + [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
        before = [queue_of(disk) for disk in disks]
        process = subprocess.Popen(
            [*BLKLAB, "compare", target, *design.question, *(design.endless if midst else design.short)],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            env=environment, cwd=working_folder,
        )  # fmt: skip
        if midst:
            wait_until(lambda: _journals(state), "the journal is begun", process=process)
        time.sleep(chance.uniform(0, design.longest_wait_seconds))
        process.send_signal(how)
        _, errors = process.communicate(timeout=PATIENCE_SECONDS)
        moment = f"comparison {number} of {target}, {how.name}, exit code {process.returncode}"
        if how == signal.SIGKILL:
            assert not midst or _journals(state), f"{moment}: no journal to restore from"
            restored = subprocess.run(
                [*BLKLAB, "restore"], capture_output=True, text=True, env=environment, check=False
            )
            assert restored.returncode == 0, f"{moment}: {restored.stderr}"
        elif midst:
            assert process.returncode == 128 + how, f"{moment}: {errors}"
        else:
            # -how: it came before the handlers were in place, while Python was still loading modules.
            assert process.returncode in (0, 128 + how, -how), f"{moment}: {errors}"
        wait_until(lambda: not _processes_with(ours), f"{moment}: no process is left")
        for disk, content in zip(disks, before, strict=True):
            assert not changed(content, queue_of(disk)), moment
        assert own_loops(folder) == [], moment
        assert _journals(state) == [], moment
        assert [path.name for path in folder.rglob(".blklab*")] == [], moment


def _journals(state: Path) -> list[Path]:
    return list(state.glob("journal/*.journal"))


@pytest.fixture
def disks(ext4: Filesystem, raw: LoopDevice) -> list[Disk]:
    """The disk under the folder, and a bystander that no comparison may touch."""
    return [_prepared(device.disk) for device in (*ext4.devices, raw)]


@pytest.mark.root
def test_random_moments(ext4: Filesystem, disks: list[Disk], tmp_path: Path, seed: int) -> None:
    _kill_comparisons(6, ext4.folder, disks, tmp_path, seed)


@pytest.mark.root
@pytest.mark.slow
def test_a_hundred_random_moments(ext4: Filesystem, disks: list[Disk], tmp_path: Path, seed: int) -> None:
    _kill_comparisons(100, ext4.folder, disks, tmp_path, seed)


@pytest.mark.root
def test_random_moments_of_switchbacks(
    ext4: Filesystem, disks: list[Disk], tmp_path: Path, seed: int
) -> None:
    _kill_comparisons(2, ext4.folder, disks, tmp_path, seed, SWITCHBACK)


@pytest.mark.root
@pytest.mark.slow
def test_a_hundred_random_moments_of_switchbacks(
    ext4: Filesystem, disks: list[Disk], tmp_path: Path, seed: int
) -> None:
    _kill_comparisons(100, ext4.folder, disks, tmp_path, seed, SWITCHBACK)


@pytest.mark.root
def test_random_moments_of_commands(ext4: Filesystem, disks: list[Disk], tmp_path: Path, seed: int) -> None:
    _kill_comparisons(3, ext4.folder, disks, tmp_path, seed, COMMANDS)


@pytest.mark.root
@pytest.mark.slow
def test_a_hundred_random_moments_of_commands(
    ext4: Filesystem, disks: list[Disk], tmp_path: Path, seed: int
) -> None:
    _kill_comparisons(100, ext4.folder, disks, tmp_path, seed, COMMANDS)
