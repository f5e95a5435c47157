"""Sessions killed without a chance to tidy up: no fio is left, and the next start restores everything."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from blklab.linux.journal.recovery import raise_for_failures, recover
from host.conftest import RUN_ID, Filesystem, opened, queue_of
from real_devices import own_loops
from waiting import wait_until

pytestmark = pytest.mark.root

SESSION = """
import sys
from blklab.backends.host import BACKEND
from blklab.backends.protocol import SessionOptions
from blklab.spec.plan import Cell, CellKey
from blklab.spec.schedulers import parse_scheduler_choices
from blklab.spec.targets import parse_target
from blklab.spec.workloads import parse_workload

target, run_id = sys.argv[1:]
text = "[r]\\nrw=randrw\\nbs=4k\\nsize=4m\\nnumjobs=3\\ncgroup=batch\\ntime_based\\nruntime=150ms\\n"
workload = parse_workload(text, name="w", source="w.fio")
choices = parse_scheduler_choices("bfq:slice_idle=0,kyber,mq-deadline:fifo_batch=1")
options = SessionOptions(run_id=run_id, queue={"nr_requests": "64"})
print("begin", flush=True)
with BACKEND.open(parse_target(target), options) as session:
    session.check(choices, [workload])
    session.prepare([workload], lambda line: None)
    print("ready", flush=True)
    while True:
        for choice in choices:
            key = CellKey(block=0, sequence=0, position=0, workload="w", scheduler=choice.label, seed=1)
            assert session.run(Cell(key=key, scheduler=choice, workload=workload)).status == "ok"
"""


def start(target: str, run_id: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", SESSION, target, run_id], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begin\n"
    return process


def fio_processes(run_id: str) -> list[int]:
    found = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        with suppress(OSError):
            if str(link.readlink()).startswith(f"/run/blklab-{run_id}"):
                found.append(int(link.parent.name))
    return found


def wait_until_running(process: subprocess.Popen[str], run_id: str) -> None:
    """Waits until all of fio's tasks are alive: the shell, fio and its three jobs."""
    wait_until(lambda: len(fio_processes(run_id)) >= 4, "fio is running", process=process)


def wait_until_no_fio(run_id: str) -> None:
    """Waits until the kernel has ended all of fio's tasks, which the death of blklab makes it do."""
    wait_until(lambda: not fio_processes(run_id), "no fio is left")


@pytest.mark.parametrize("times", [6, pytest.param(60, marks=pytest.mark.slow)])
def test_sigkill_leaves_no_fio_and_recovery_puts_all_back(
    ext4: Filesystem, state: Path, seed: int, times: int
) -> None:
    chance = random.Random(seed)  # noqa: S311 - not for secrets
    for attempt in range(times):
        run_id = f"kill{attempt}-{RUN_ID}"
        process = start(str(ext4.folder), run_id)
        if attempt % 3:
            wait_until_running(process, run_id)
            time.sleep(chance.uniform(0, 0.3))
        else:
            time.sleep(chance.uniform(0, 1.0))
        process.send_signal(signal.SIGKILL)
        process.wait()
        wait_until_no_fio(run_id)
        raise_for_failures(recover(state))
        ext4.assert_untouched()
        assert not Path(f"/run/blklab-{run_id}").exists()
        assert list(Path("/sys/fs/cgroup").glob(f"*/blklab-{run_id}")) == []


def test_the_next_start_recovers_by_itself(ext4: Filesystem) -> None:
    run_id = f"dead-{RUN_ID}"
    process = start(str(ext4.folder), run_id)
    wait_until_running(process, run_id)
    process.kill()
    process.wait()
    wait_until_no_fio(run_id)
    assert queue_of(ext4.devices[0].device) != ext4.devices[0].before
    with opened(str(ext4.folder)) as session:
        assert (
            session.target.default_scheduler
            == ext4.devices[0].before["scheduler"].split("[")[1].split("]")[0]
        )
        ext4.assert_untouched()
    ext4.assert_untouched()


def test_sigkill_with_a_loop_target_leaves_no_device(disk_folder: Path, state: Path) -> None:
    for attempt in range(3):
        process = start(f"loop:16m,dir={disk_folder}", f"loopkill{attempt}-{RUN_ID}")
        time.sleep(0.1 + 0.5 * attempt)  # into different phases; none of the assertions depends on which
        process.kill()
        process.wait()
        raise_for_failures(recover(state))
        assert own_loops(disk_folder) == []
        assert list(disk_folder.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_process_without_handlers_that_is_ended_is_recovered_too(
    ext4: Filesystem, state: Path, number: signal.Signals
) -> None:
    run_id = f"ended-{RUN_ID}"
    process = start(str(ext4.folder), run_id)
    wait_until_running(process, run_id)
    os.kill(process.pid, number)
    process.wait()
    wait_until_no_fio(run_id)
    raise_for_failures(recover(state))
    ext4.assert_untouched()
