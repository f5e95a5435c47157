"""Replays in guest kernels: the simulator's I/Os, and what a task waits for in another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import blklab
from blklab.errors import BlklabError
from blklab.records.samples import JobSample
from blklab.simulator.timeline import MERGED
from blklab.spec.workloads import load_workload
from plain_simulation import simulate
from recorded_simulation import line, reads_of_workers, record_simulation, write_guest_recording

from .guest_runs import measure, record

pytestmark = pytest.mark.usefixtures("real_guest")

JOBS = """
[reader]
rw=randread
direct=1
thinktime=200
size=512m
number_ios=60

[writer]
rw=randwrite
bs=64k
direct=1
rate_iops=400
startdelay=3ms
size=4m
"""
DEVICE = "fixed,latency=300us,depth=4"


def latencies(jobs: list[JobSample]) -> dict[tuple[str, str], tuple[int, dict[int, int]]]:
    """The length of each job, and the histograms of its latencies."""
    return {
        (job.name, one.direction): (job.runtime_ns, dict(one.latency.bins))
        for job in jobs
        for one in job.directions
    }


def replayed_alike(path: Path, device: str, scheduler: str) -> blklab.Timeline:
    """Replays a recording in a guest and in the simulator, which agree; the simulator's timeline."""
    workload = load_workload(f"trace:{path},scale-to=recorded")
    sample = measure(f"uml:{device}", workload.text, scheduler)
    simulated = simulate(device, workload.text, scheduler=scheduler, arrangement="fixed", timeline=True)
    assert latencies(sample.jobs) == latencies(simulated.jobs)
    assert simulated.timeline is not None
    return simulated.timeline


@pytest.mark.parametrize("scheduler", ["none", "mq-deadline", "kyber", "bfq"])
def test_a_recorded_simulation_replays_to_the_same_bits(scheduler: str, tmp_path: Path) -> None:
    path = tmp_path / "recorded.txt"
    recorded = record_simulation(path, DEVICE, JOBS, scheduler)
    workload = load_workload(f"trace:{path},scale-to=recorded")
    sample = measure(f"uml:{DEVICE}", workload.text, scheduler)
    simulated = simulate(DEVICE, workload.text, scheduler=scheduler, arrangement="fixed")
    assert latencies(sample.jobs) == latencies(simulated.jobs)
    # All processes of a replay start at once, so that one that had begun later takes longer.
    bins = [
        {key: one for key, (_, one) in latencies(jobs).items()} for jobs in (sample.jobs, recorded.run.jobs)
    ]
    assert bins[0] == bins[1]


BESIDE = """
[global]
direct=1
number_ios=60

[reader]
rw=randread
size=256m

[writers]
rw=write
bs=256k
ioengine=libaio
iodepth=16
numjobs=2
offset=256m
offset_increment=128m
size=128m
"""
"""More I/Os than tags, so that tasks sleep for them."""
STREAMS = """
[readers]
rw=read
bs=128k
direct=1
size=8m
offset_increment=64m
numjobs=4
"""
DEEP = "[writer]\nrw=randwrite\ndirect=1\nioengine=libaio\niodepth=32\nsize=256m\nnumber_ios=200\n"


@pytest.mark.parametrize("jobs", [BESIDE, STREAMS, DEEP])
@pytest.mark.parametrize("scheduler", ["none", "bfq"])
def test_a_recorded_guest_replays_to_the_same_bits(scheduler: str, jobs: str, tmp_path: Path) -> None:
    path = tmp_path / "recorded.txt"
    sample, ios = record("uml:hdd-7200", jobs, scheduler)
    write_guest_recording(path, ios, [job.name for job in sample.jobs])
    workload = load_workload(f"trace:{path},scale-to=recorded")
    _, again = record("uml:hdd-7200", workload.text, scheduler)
    # A replay is asynchronous, so it also knows when a reader had a tag.
    assert [replace(io, submitted_ns=0) for io in again] == [replace(io, submitted_ns=0) for io in ios]


def test_a_recording_has_what_the_jobs_count() -> None:
    jobs = "[a]\nrw=randrw\nbs=4k\ndirect=1\nsize=1m\nnumber_ios=50\n"
    sample, ios = record("uml:fixed,latency=300us,depth=4", jobs, "none")
    (job,) = sample.jobs
    counted = {str(one.direction): one for one in job.data_directions()}
    for direction, is_write in (("read", False), ("write", True)):
        own = [io for io in ios if io.is_write == is_write]
        assert len(own) == counted[direction].ios > 0
        # One at a time: the program knows of a completion at once.
        assert {io.completed_ns - io.queued_ns for io in own} == {300_000}
        assert counted[direction].latency.mean_ns == 300_000


def test_only_direct_io_is_recorded() -> None:
    with pytest.raises(BlklabError, match="direct I/O"):
        record("uml:fixed,latency=300us", "[a]\nrw=read\nsize=1m\n", "none")


def test_tasks_wait_for_each_other_as_in_the_simulator(tmp_path: Path) -> None:
    # A commit: a task writes, the journal writes and flushes, the task goes on.
    events = [
        (0, "Q", 1, "WS 0 + 8 [app]"),
        (200_000, "C", 1, "WS 0 + 8 [0]"),
        (210_000, "Q", 2, "WS 4000 + 16 [jbd2/sda-8]"),
        (300_000, "C", 2, "WS 4000 + 16 [0]"),
        (310_000, "Q", 2, "FWFS 4016 + 8 [jbd2/sda-8]"),
        (700_000, "C", 2, "WFS 4016 + 8 [0]"),
        (720_000, "Q", 1, "WS 8 + 8 [app]"),
        (900_000, "C", 1, "WS 8 + 8 [0]"),
    ]
    path = tmp_path / "commit.txt"
    path.write_text(
        "".join(line(n, at, 0, task, what, rest) for n, (at, what, task, rest) in enumerate(events))
    )
    workload = load_workload(f"trace:{path}")
    device = "fixed,latency=2ms,depth=4"
    sample = measure(f"uml:{device}", workload.text, "mq-deadline")
    simulated = simulate(device, workload.text, scheduler="mq-deadline", arrangement="fixed")
    assert latencies(sample.jobs) == latencies(simulated.jobs)
    # Each of the four steps waits for the one before: on a disk of 2 ms they take at least 8 ms.
    assert simulated.job("app").runtime_ns > 8_000_000


def plugged_ios(plugs: int) -> str:
    """Two tasks that keep I/Os back until the last is queued: reads by twos, neighbouring writes by fours."""
    events = []
    for number in range(plugs):
        for task, in_plug, letters, apart in ((1, 2, "R", 4096), (2, 4, "WS", 8)):
            first = number * 700_000 + task * 3000
            for place in range(in_plug):
                sectors = f"{letters} {task * 100_000 + number * 20_000 + place * apart} + 8"
                events += [
                    (first + place * 2000, "Q", task, f"{sectors} [task{task}]"),
                    (first + 10_000, "I", task, f"{sectors} [task{task}]"),
                    (first + 400_000 + place, "C", task, f"{sectors} [0]"),
                ]
    events.sort()
    return "".join(line(n, at, 0, task, what, rest) for n, (at, what, task, rest) in enumerate(events))


@pytest.mark.parametrize("scheduler", ["none", "mq-deadline", "kyber", "bfq"])
@pytest.mark.parametrize("device", [DEVICE, "fixed,latency=20us,depth=2"])
def test_ios_of_a_plug_are_submitted_together(device: str, scheduler: str, tmp_path: Path) -> None:
    path = tmp_path / "plugs.txt"
    path.write_text(plugged_ios(plugs=20))
    timeline = replayed_alike(path, device, scheduler)
    requests = timeline.requests
    merged = requests["flags"] & MERGED != 0
    # Reads are apart from each other; of a plug's writes, three merge with the first.
    assert np.bincount(requests["operation"][merged], minlength=2).tolist() == [0, 3 * 20]
    writer = next(job for job in timeline.run.jobs if job.name == "task2")
    assert writer.directions[0].ios == 4 * 20


@pytest.mark.parametrize("scheduler", ["none", "mq-deadline", "kyber", "bfq"])
@pytest.mark.parametrize("device", [DEVICE, "hdd-7200"])
def test_each_worker_of_a_pool_is_a_task_for_schedulers(device: str, scheduler: str, tmp_path: Path) -> None:
    path = tmp_path / "workers.txt"
    path.write_text(reads_of_workers(count=120))
    requests = replayed_alike(path, device, scheduler).requests
    assert len(np.unique(requests["task"])) == 3
    assert set(requests["job"].tolist()) == {0}
