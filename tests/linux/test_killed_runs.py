"""Whatever ends a run, and whenever: every queue setting of the machine is byte for byte as before."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from blklab.linux.disks.disk import Disk
from blklab.linux.journal.recovery import raise_for_failures, recover
from blklab.linux.queue.attributes import write_attribute
from blklab.linux.queue.schedulers import set_scheduler
from real_devices import LoopMaker, changed, own_loops, queues

pytestmark = pytest.mark.root

_SIGNALS = [signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
_VICTIM = Path(__file__).with_name("journal_victim.py")
_LONGEST_WAIT_SECONDS = 0.35
_RUNS_AND_ENDS = 40


def _run_and_kill(disk: Disk, scratch: Path, state: Path, seed: int) -> tuple[str, bool]:
    """Starts a victim and ends it at a random moment; how it ended, and whether recovery had to help."""
    choose = random.Random(seed)  # noqa: S311 - not for secrets
    number = choose.choice(_SIGNALS)
    before_start = choose.random() < 0.1
    changes = _RUNS_AND_ENDS if choose.random() < 0.1 else 10**9
    arguments = [str(disk.dev_path), str(scratch), f"victim-{seed}", str(seed), str(changes)]
    with subprocess.Popen(
        [sys.executable, str(_VICTIM), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as victim:
        assert victim.stdout is not None
        assert victim.stderr is not None
        ready = False
        if not before_start:
            ready = victim.stdout.readline() == "ready\n"
            assert ready, victim.stderr.read()
        time.sleep(choose.uniform(0, _LONGEST_WAIT_SECONDS))
        victim.send_signal(number)
        sent = [number]
        if choose.random() < 0.5:
            # Impatience: a second signal in the midst of restoring, which must not break it off.
            time.sleep(choose.uniform(0, 0.02))
            sent.append(choose.choice(_SIGNALS[1:]))
            victim.send_signal(sent[-1])
        _, complaints = victim.communicate(timeout=60)
    left = list(state.glob("journal/*.journal"))
    if ready and number is not signal.SIGKILL:
        # Of two signals that are pending together the lower number comes first; one that comes when all is
        # back already ends the program in the plain way.
        expected = {0, *(128 + each for each in sent), *(-each for each in sent)}
        assert victim.returncode in expected, complaints
        assert not left, "a run that could restore by itself has left a journal"
    reports = recover(state)
    raise_for_failures(reports)
    return number.name, bool(reports)


def _kill_many(rounds: int, first_seed: int, make_loop: LoopMaker, scratch: Path, state: Path) -> None:
    disk = make_loop(32)
    # Not the kernel's defaults, so that falling back to them would not do.
    set_scheduler(disk, "mq-deadline")
    for name, value in (
        ("nr_requests", "100"),
        ("iosched/fifo_batch", "7"),
        ("wbt_lat_usec", "1234"),
        ("read_ahead_kb", "96"),
        ("nomerges", "1"),
    ):
        write_attribute(disk, name, value)
    before, loops = queues(disk), own_loops(scratch)
    counts: dict[str, int] = {}
    recoveries = 0
    for seed in range(first_seed, first_seed + rounds):
        how, recovered = _run_and_kill(disk, scratch, state, seed)
        counts[how] = counts.get(how, 0) + 1
        recoveries += recovered
        assert not changed(before, queues(disk)), f"seed {seed}, {how}"
        assert own_loops(scratch) == loops == [disk.name], f"seed {seed}, {how}"
        assert [path.name for path in scratch.iterdir()] == [f"image-{disk.name[4:]}"], f"seed {seed}, {how}"
        assert not list(state.glob("journal/*.journal")), f"seed {seed}, {how}"
    sys.stdout.write(f"{rounds} kills: {counts}, {recoveries} finished by recovery\n")
    assert recoveries, "no kill left anything to recover: the test has no teeth"


def test_fifteen_kills(make_loop: LoopMaker, scratch: Path, state: Path) -> None:
    _kill_many(15, 1, make_loop, scratch, state)


@pytest.mark.slow
def test_a_hundred_and_fifty_kills(make_loop: LoopMaker, scratch: Path, state: Path) -> None:
    _kill_many(150, 1000, make_loop, scratch, state)
