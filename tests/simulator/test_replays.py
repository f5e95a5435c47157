"""Replays in the simulator: a recorded simulation, other schedulers, and verdicts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from blklab.cli import run
from blklab.errors import ExitCode
from command_runs import json_of
from plain_simulation import simulate
from recorded_simulation import reads_of_workers, record_simulation

JOBS = """
[reader]
rw=randread
direct=1
thinktime=200
size=512m
number_ios=200

[idle]
rw=randread
direct=1
size=512m
startdelay=1ms
number_ios=100

[writer]
rw=randwrite
bs=64k
direct=1
rate_iops=400
startdelay=3ms
size=64m
"""


@pytest.mark.parametrize("device", ["hdd-7200", "ssd-sata"])
@pytest.mark.parametrize("scheduler", ["none", "mq-deadline", "kyber", "bfq"])
def test_a_recorded_simulation_replays_to_the_same_bits(device: str, scheduler: str, tmp_path: Path) -> None:
    path = tmp_path / "recorded.txt"
    recorded = record_simulation(path, device, JOBS, scheduler)
    replayed = simulate(
        device,
        f"trace:{path},scale-to=recorded",
        scheduler=scheduler,
        arrangement="fixed",
        timeline=True,
    ).timeline
    assert replayed is not None
    columns = ("arrive_ns", "dispatch_ns", "complete_ns", "sector", "sectors", "operation", "task")
    for column in columns:
        assert np.array_equal(recorded.requests[column], replayed.requests[column]), column
    assert recorded.run.simulated_ns == replayed.run.simulated_ns


def test_an_open_replay_keeps_the_recorded_times(tmp_path: Path) -> None:
    path = tmp_path / "recorded.txt"
    recorded = record_simulation(path, "hdd-7200", JOBS, "none")
    twice = simulate(
        "ssd-sata",
        f"trace:{path},replay=open,speed=2",
        scheduler="bfq",
        arrangement="fixed",
        timeline=True,
    ).timeline
    assert twice is not None
    starts = np.sort(recorded.ios["start_ns"])
    assert np.array_equal(np.sort(twice.ios["start_ns"]), (starts - starts[0]) // 2)


def test_comparing_a_scheduler_with_itself_names_no_winner(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    path = tmp_path / "recorded.txt"
    record_simulation(path, "hdd-7200", JOBS, "mq-deadline")
    document = json_of(
        capsys, "compare", "sim:hdd-7200", "-w", f"trace:{path}", "-s", "a=bfq,b=bfq", "--blocks", "6"
    )
    assert document["verdict"]["status"] == "equal", document["verdict"]
    assert {comparison["outcome"] for comparison in document["comparisons"]} == {"equal"}


def test_fio_in_a_guest_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "recorded.txt"
    record_simulation(path, "ssd-sata", JOBS, "none")
    arguments = ["run", "uml:ssd-sata", f"trace:{path}", "--scheduler", "none", "--generator", "fio"]
    assert run(arguments) in (ExitCode.USAGE, ExitCode.REQUIREMENT)
    assert capsys.readouterr().err.startswith("error: ")


@pytest.mark.parametrize(("scheduler", "idles"), [("deadline", False), ("cfq", True)])
def test_each_worker_of_a_pool_is_a_task_for_schedulers(scheduler: str, idles: bool, tmp_path: Path) -> None:
    path = tmp_path / "workers.txt"
    took_ns = []
    for workers in (3, 1):
        path.write_text(reads_of_workers(120, workers))
        run = simulate("hdd-7200", f"trace:{path},scale-to=recorded", scheduler=scheduler)
        (job,) = run.jobs
        took_ns.append(job.runtime_ns)
        assert job.directions[0].ios == 120
    # cfq idles for a worker while others have reads.
    assert (took_ns[0] > took_ns[1] + 100_000_000) == idles
