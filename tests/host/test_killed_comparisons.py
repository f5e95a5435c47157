"""Comparisons on the real disk, killed at random moments: every setting is byte for byte as before.

Half of the kills are SIGKILL, after which `blklab restore` has to do it; the other signals leave the
restoring to blklab itself.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from real_devices import SHARED_VARIABLE

BLKLAB = [sys.executable, "-m", "blklab"]
JOB = "[mixed]\nrw=randrw\nbs=4k\ndirect=1\nioengine=libaio\niodepth=8\nsize=16m\ntime_based\nruntime=200ms\n"
QUESTION = [
    "-w", "mixed.fio", "-s", "none,mq-deadline:fifo_batch=4,kyber,bfq", "--queue", "nomerges=1",
    "--blocks", "2", "-q", "--json", "-",
]  # fmt: skip
LONGEST_S = 7.0
"""A comparison of two blocks as below takes about as long, so moments fall into every phase of it."""


def _settings() -> dict[str, bytes]:
    """Every readable attribute of every queue of this machine."""
    found: dict[str, bytes] = {}
    for queue in Path("/sys/block").glob("*/queue"):
        for path in [*queue.glob("*"), *queue.glob("iosched/*")]:
            if path.is_file():
                try:
                    found[str(path)] = path.read_bytes()
                except OSError as error:
                    found[str(path)] = f"unreadable: {error.errno}".encode()
    return found


def _leftovers(folder: Path, state: Path) -> list[str]:
    """Scratch files, journals, loop devices, control groups and fio processes of ours."""
    found = [str(path) for path in folder.rglob(".blklab*")]
    found += [str(path) for path in state.glob("journal/*.journal")]
    found += [str(path) for path in Path("/sys/fs/cgroup").glob("*/blklab*")]
    for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
        if str(folder) in backing.read_text():
            found.append(str(backing))
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = command.read_bytes().split(b"\0")
        except OSError:
            continue
        if words and re.search(rb"(^|/)fio$", words[0]):
            found.append(str(command))
    return found


def _kill_comparisons(count: int, folder: Path, seed: int) -> None:
    state = folder / "state"
    environment = {**os.environ, "BLKLAB_STATE_DIR": str(state), "XDG_DATA_HOME": str(folder / "data")}
    (folder / "mixed.fio").write_text(JOB)
    chance = random.Random(seed)  # noqa: S311 - not for secrets
    ended_by_themselves = 0
    for number in range(count):
        target = chance.choice([str(folder), f"loop:32m,dir={folder}"])
        before = _settings()
        process = subprocess.Popen(
            [*BLKLAB, "compare", target, *QUESTION],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            env=environment, cwd=folder,
        )  # fmt: skip
        time.sleep(chance.uniform(0.3, LONGEST_S))
        how = chance.choice([signal.SIGKILL] * 3 + [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
        process.send_signal(how)
        _, errors = process.communicate(timeout=120)
        moment = f"comparison {number} of {target}, {how.name}, exit code {process.returncode}"
        ended_by_themselves += process.returncode == 0
        if how == signal.SIGKILL:
            restored = subprocess.run(
                [*BLKLAB, "restore"], capture_output=True, text=True, env=environment, check=False
            )
            assert restored.returncode == 0, f"{moment}: {restored.stderr}"
        else:
            # -how: it came before the handlers were in place, while Python was still loading modules.
            assert process.returncode in (0, 128 + how, -how), f"{moment}: {errors}"
        after = _settings()
        if os.environ.get(SHARED_VARIABLE):
            # Somebody else's loop devices come and go.
            before = {path: value for path, value in before.items() if path in after}
            after = {path: value for path, value in after.items() if path in before}
        changed = {
            path: (before.get(path), after.get(path))
            for path in before.keys() | after.keys()
            if before.get(path) != after.get(path)
        }
        assert not changed, f"{moment}: {changed}"
        assert not _leftovers(folder, state), f"{moment}: {_leftovers(folder, state)}"
    assert ended_by_themselves < count / 2, "most comparisons were over before they were killed"


@pytest.mark.root
def test_a_dozen_random_moments(disk_folder: Path) -> None:
    _kill_comparisons(12, disk_folder, seed=int(time.time()))


@pytest.mark.root
@pytest.mark.slow
def test_a_hundred_random_moments(disk_folder: Path) -> None:
    _kill_comparisons(100, disk_folder, seed=int(time.time()))
