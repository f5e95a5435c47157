"""Runs that are killed at random moments: every queue setting is byte for byte as before."""

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
from real_devices import LoopMaker, changed, own_loops, queue_of
from waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.root

_SIGNALS = [signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
_VICTIM = Path(__file__).with_name("journal_victim.py")
_LONGEST_WAIT_SECONDS = 0.35
_FEW_CHANGES = 40
"""A victim with so few ends by itself, perhaps before it is killed."""
_ENDLESS = 10**9


def _run_and_kill(disk: Disk, scratch: Path, state: Path, seed: int, number: signal.Signals) -> str:
    """Starts a victim, kills it at a random moment, and returns how it ended."""
    choose = random.Random(seed)  # noqa: S311 - not for secrets
    before_start = choose.random() < 0.1
    changes = _FEW_CHANGES if choose.random() < 0.1 else _ENDLESS
    arguments = [str(disk.dev_path), str(scratch), f"victim-{seed}", str(seed), str(changes)]
    with subprocess.Popen(
        [sys.executable, str(_VICTIM), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as victim:
        assert victim.stdout is not None
        assert victim.stderr is not None
        if not before_start:
            assert victim.stdout.readline() == "ready\n", victim.stderr.read()
        time.sleep(choose.uniform(0, _LONGEST_WAIT_SECONDS))
        victim.send_signal(number)
        sent = [number]
        if choose.random() < 0.5:
            # Impatience: a second signal in the midst of restoring, which must not break it off.
            time.sleep(choose.uniform(0, 0.02))
            sent.append(choose.choice(_SIGNALS[1:]))
            victim.send_signal(sent[-1])
        _, complaints = victim.communicate(timeout=PATIENCE_SECONDS)
    left = list(state.glob("journal/*.journal"))
    how = f"seed {seed}: {', '.join(each.name for each in sent)}, {changes} changes"
    if not before_start and number is not signal.SIGKILL:
        # Of two signals that are pending together the lower number comes first; one that comes when all is
        # back already ends the program in the plain way.
        expected = {0, *(128 + each for each in sent), *(-each for each in sent)}
        assert victim.returncode in expected, f"{how}: {complaints}"
        assert not left, f"{how}: a run that could restore by itself has left a journal"
    reports = recover(state)
    raise_for_failures(reports)
    if not before_start and number is signal.SIGKILL and changes == _ENDLESS:
        assert reports, f"{how}: the kill left nothing to recover, so this test shows nothing"
    return how


def _kill_many(rounds: int, seed: int, make_loop: LoopMaker, scratch: Path, state: Path) -> None:
    disk, bystander = make_loop(32), make_loop(32)
    # Not the kernel's defaults, so that falling back to them would not do.
    for each in (disk, bystander):
        set_scheduler(each, "mq-deadline")
        for name, value in (
            ("nr_requests", "100"),
            ("iosched/fifo_batch", "7"),
            ("wbt_lat_usec", "1234"),
            ("read_ahead_kb", "96"),
            ("nomerges", "1"),
        ):
            write_attribute(each, name, value)
    before = [queue_of(each) for each in (disk, bystander)]
    loops, files = own_loops(scratch), sorted(scratch.iterdir())
    for round_number in range(rounds):
        signal_number = _SIGNALS[round_number % len(_SIGNALS)]
        how = _run_and_kill(disk, scratch, state, seed + round_number, signal_number)
        for each, content in zip((disk, bystander), before, strict=True):
            assert not changed(content, queue_of(each)), how
        assert own_loops(scratch) == loops, how
        assert sorted(scratch.iterdir()) == files, how
        assert not list(state.glob("journal/*.journal")), how


def test_fifteen_kills(make_loop: LoopMaker, scratch: Path, state: Path, seed: int) -> None:
    _kill_many(15, seed, make_loop, scratch, state)


@pytest.mark.slow
def test_a_hundred_and_fifty_kills(make_loop: LoopMaker, scratch: Path, state: Path, seed: int) -> None:
    _kill_many(150, seed, make_loop, scratch, state)
