"""Jobs that wait for one I/O for most of a run, which means of latencies do not show."""

from __future__ import annotations

from pathlib import Path

import pytest

from blklab.records.samples import JobSample
from blklab.records.starvation import Starved, starved
from blklab.simulator.request import SimulationRequest
from blklab.simulator.simulation import simulate_many
from blklab.spec.workloads import parse_workload
from command_runs import json_of

DISK = "sim:fixed,depth=1,latency=2130us,rotational=1"
HEAD = "[global]\nioengine=psync\ndirect=1\nbs=4k\nsize=1g\ntime_based\n"
EACH = "".join(f"[reader{n}]\nrw=randread\n[writer{n}]\nrw=randwrite\n" for n in range(4))
MERGED = "[readers]\nrw=randread\nnumjobs=4\n[writers]\nrw=randwrite\nnumjobs=4\n"


def _starved(more: str = "runtime=8s\n", jobs: str = EACH) -> tuple[list[Starved], list[JobSample]]:
    workload = parse_workload(HEAD + more + jobs, name="turns", source="turns")
    request = SimulationRequest(
        DISK.removeprefix("sim:"), workload, scheduler="cfq", costs="zero-cpu-time", arrangement="fixed"
    )
    (answer,) = simulate_many([request], 1)
    return starved(workload, answer.jobs), list(answer.jobs)


def test_cfq_serves_three_of_eight_random_tasks_for_good() -> None:
    """A task that is back within a command goes to the front: no other has a turn."""
    found, jobs = _starved()
    assert len(found) == 5
    # Each is served until cfq knows that it seeks.
    assert {_ios(job) for job in jobs if job.name in {one.job for one in found}} == {7}
    merged, _ = _starved(jobs=MERGED)
    assert sum(one.processes for one in merged) == 5


def test_tasks_that_come_late_now_and_then_end_it() -> None:
    _, late = _starved("runtime=8s\nthinktime=3ms\nthinktime_blocks=5\n")
    assert min(_ios(job) for job in late) > 400
    # Less than a command takes is not late.
    _, soon = _starved("runtime=8s\nthinktime=1ms\nthinktime_blocks=5\n")
    assert sum(_ios(job) < 10 for job in soon) == 5


def test_who_may_still_get_its_turn_does_not_starve() -> None:
    assert not _starved("runtime=300ms\n")[0], "in so few I/Os each may have waited by chance"


@pytest.mark.parametrize(("option", "number"), [("", 1), ("startdelay=8s\n", 0), ("stonewall\n", 0)])
def test_a_job_without_any_io_starves_unless_it_was_to_wait(option: str, number: int) -> None:
    text = f"{HEAD}runtime=1s\n[one]\nrw=randread\n[other]\nrw=randread\n{option}"
    workload = parse_workload(text, name="two", source="two")
    request = SimulationRequest(
        DISK.removeprefix("sim:"), workload, scheduler="noop", costs="zero-cpu-time", arrangement="fixed"
    )
    (answer,) = simulate_many([request], 1)
    one, other = answer.jobs
    assert not starved(workload, [one, other])
    assert len(starved(workload, [one, other.model_copy(update={"directions": []})])) == number


def _ios(job: JobSample) -> int:
    return sum(entry.ios for entry in job.directions)


def test_a_comparison_and_a_run_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = tmp_path / "turns.fio"
    job.write_text(HEAD + "runtime=8s\n" + MERGED)
    document = json_of(capsys, "compare", DISK, "-w", str(job), "-s", "cfq,deadline", "-n", "2", "-q")
    (warning,) = [text for text in document["warnings"] if "waited for one I/O" in text and "readers" in text]
    assert warning.startswith("turns: under cfq ")
    assert "in 2 of 2 runs" in warning and "virtual time" in warning
    document = json_of(capsys, "run", DISK, str(job), "-s", "cfq")
    assert any("waited for one I/O" in text for text in document["warnings"])
    document = json_of(capsys, "run", DISK, str(job), "-s", "deadline")
    assert not any("waited for one I/O" in text for text in document["warnings"])
