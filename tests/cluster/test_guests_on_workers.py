"""Guest kernels on the workers of a cluster."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from blklab.backends.cluster.client import Cluster
from blklab.backends.protocol import SessionOptions
from blklab.backends.uml import BACKEND
from blklab.cli import run
from blklab.errors import BlklabError
from blklab.guests.kernels.store import find
from blklab.guests.processor_lease import ProcessorLease
from blklab.records.samples import RunSample
from blklab.shipped import guest_program
from blklab.spec.plan import Cell, CellKey
from blklab.spec.schedulers import parse_scheduler_choice
from blklab.spec.targets import parse_target
from blklab.spec.workloads import parse_workload
from waiting import wait_until

from .conftest import DaskCluster

JOB = "[reader]\nrw=randread\nbs=4k\ndirect=1\nsize=64m\nnumber_ios=400\n"
ENDLESS = "[reader]\nrw=randread\nbs=4k\ndirect=1\nsize=64m\ntime_based\nruntime=100000s\n"


@pytest.fixture(autouse=True)
def _guest_can_run() -> None:
    if sys.platform != "linux":
        pytest.skip("guest kernels need Linux")
    try:
        find()
    except BlklabError as error:
        pytest.skip(f"no guest kernel: {error.message}")
    if guest_program() is None:
        pytest.skip("the guest program blkguest is not built (make build)")


def sample_of(scheduler: str, **options: Any) -> RunSample:
    choice = parse_scheduler_choice(scheduler)
    workload = parse_workload(JOB, name="jobs", source="jobs.fio")
    key = CellKey(block=0, sequence=0, position=0, workload="jobs", scheduler=choice.label, seed=7)
    asked = SessionOptions(run_id="test", arrangement="fixed", **options)
    with BACKEND.open(parse_target("uml:hdd-7200"), asked) as session:
        return session.run(Cell(key=key, scheduler=choice, workload=workload))


def guest_processes() -> list[int]:
    """Supervisors of guests whose directory is in a session that a worker began."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, IndexError):
            continue
        if any(word.endswith(b"supervisor.py") for word in words):
            found.append(parent)
    return found


def guests_of(cluster: DaskCluster) -> int:
    workers = {worker.pid for worker in cluster.workers}
    return sum(parent in workers for parent in guest_processes())


@pytest.mark.parametrize("scheduler", ["none", "bfq"])
def test_a_guest_has_the_same_bits_as_here(two_workers: DaskCluster, scheduler: str) -> None:
    there = sample_of(scheduler, workers=Cluster(two_workers.address))
    here = sample_of(scheduler)
    assert there.status == "ok"
    assert (there.jobs, there.settings, there.engine) == (here.jobs, here.settings, here.engine)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_guests_end_with_the_client_that_asked_for_them(
    two_workers: DaskCluster, tmp_path: Path, number: signal.Signals
) -> None:
    job = tmp_path / "endless.fio"
    job.write_text(ENDLESS)
    command = [sys.executable, "-m", "blklab", "compare", "uml:hdd-7200", "-s", "none,bfq", "-w", str(job)]
    command += ["--blocks", "1", "--cluster", two_workers.address, "--store", str(tmp_path / "runs.db")]
    client = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        wait_until(lambda: guests_of(two_workers) == 2, "a guest on each worker", process=client)
        client.send_signal(number)
        _, printed = client.communicate()
        assert client.returncode == (130 if number == signal.SIGINT else -number), printed.decode()
        wait_until(lambda: guests_of(two_workers) == 0, "the guests to end")
    finally:
        client.kill()


def test_files_of_a_guest_outlive_the_workers_that_had_them(dask: DaskCluster) -> None:
    first = dask.start_worker()
    choice = parse_scheduler_choice("none")
    workload = parse_workload(JOB, name="jobs", source="jobs.fio")
    key = CellKey(block=0, sequence=0, position=0, workload="jobs", scheduler="none", seed=7)
    cell = Cell(key=key, scheduler=choice, workload=workload)
    options = SessionOptions(run_id="test", arrangement="fixed", workers=Cluster(dask.address))
    with BACKEND.open(parse_target("uml:hdd-7200"), options) as session:
        before = session.run(cell)
        first.kill()
        first.wait()
        dask.start_worker()
        after = session.run(cell)
    assert before.status == after.status == "ok", (before.error, after.error)
    assert before.jobs == after.jobs


def test_host_time_is_refused(two_workers: DaskCluster, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["compare", "uml:hdd-7200", "-w", "many-readers", "--time", "host"]
    assert run([*asked, "--cluster", two_workers.address]) == 2
    assert "guests in host time measure the machine that they run on" in capsys.readouterr().err


def test_no_processor_has_two_guests_while_another_has_none() -> None:
    ours = os.sched_getaffinity(0)
    leases = [ProcessorLease() for _ in ours]
    try:
        # Guests of other tests may hold some; those that we got are ours alone.
        assert {lease.number for lease in leases} <= ours
        mine = [lease.number for lease in leases if lease.alone]
        assert len(mine) == len(set(mine))
        assert ProcessorLease().number in ours
    finally:
        for lease in leases:
            lease.end()
