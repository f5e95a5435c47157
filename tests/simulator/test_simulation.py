"""`blklab.simulate` and `blklab.simulate_many`: results, errors, threads and signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import blklab
from blklab.errors import (
    ProfileError,
    SimulationError,
    TunableError,
    UnknownNameError,
    UsageError,
)
from blklab.simulator.request import Jobs
from blklab.spec.arguments import Setting
from blklab.spec.workloads import load_workload
from plain_simulation import plain_request, simulate
from waiting import PATIENCE_SECONDS

READER: dict[str, dict[str, Setting]] = {
    "reader": {"rw": "randread", "bs": "4k", "direct": 1, "number_ios": 500}
}
ENDLESS: dict[str, dict[str, Setting]] = {
    "reader": {"rw": "randread", "direct": True, "time_based": True, "runtime": "10h"}
}


def test_a_result_says_what_was_simulated_and_what_came_out() -> None:
    result = simulate("fixed,latency=200us", READER, scheduler="mq-deadline:fifo_batch=4", seed=3)
    assert (result.target, result.scheduler, result.seed) == ("sim:fixed,latency=200us", "mq-deadline", 3)
    assert result.tunables["fifo_batch"] == 4
    (reads,) = result.job("reader").directions
    assert (reads.ios, reads.latency.min_ns, reads.latency.max_ns) == (500, 200_000, 200_000)
    assert result.timeline is None
    with pytest.raises(UnknownNameError, match="writer"):
        result.job("writer")


def test_a_result_in_a_shell_fits_the_screen() -> None:
    result = simulate("fixed,latency=200us", READER, scheduler="none", timeline=True)
    title, reads = repr(result).splitlines()
    assert title == "<SimulationResult of sim:fixed,latency=200us: jobs under none>"
    assert reads == "reader: 500 reads in 100 ms, 1.95 MiB, mean 200 µs, p99 200 µs"
    assert repr(result.timeline) == (
        "<Timeline of jobs under none on sim:fixed,latency=200us: 500 requests, 500 I/Os>"
    )
    assert repr(result.jobs[0].directions[0].latency) == (
        "LatencyHistogram(count=500, sum_ns=100000000.0, min_ns=200000, max_ns=200000)"
    )


def test_jobs_come_in_every_form(tmp_path: Path) -> None:
    text = "[reader]\nrw=randread\nbs=4k\ndirect=1\nnumber_ios=500\n"
    named = simulate("sim:hdd-7200", "random-read-4k-qd1", runtime="200ms")
    assert named.workload == "random-read-4k-qd1"
    (tmp_path / "mine.fio").write_text(text)
    forms: list[Jobs] = [text, READER, tmp_path / "mine.fio", load_workload(str(tmp_path / "mine.fio"))]
    results = [simulate("hdd-7200", jobs).jobs for jobs in forms]
    assert all(result == results[0] for result in results)


def test_without_a_scheduler_the_devices_default_is_taken() -> None:
    assert simulate("hdd-7200", READER).scheduler == "mq-deadline"
    assert simulate("nvme-tlc", READER).scheduler == "none"


def test_mistakes_are_typed_errors() -> None:
    with pytest.raises(UnknownNameError, match="hdd-7201"):
        simulate("hdd-7201", READER)
    with pytest.raises(UsageError, match="names no device"):
        simulate("sim:", READER)
    with pytest.raises(ProfileError, match="latency"):
        simulate("fixed,latency=-1", READER)
    with pytest.raises(UnknownNameError, match="cfk"):
        simulate("fixed", READER, scheduler="cfk")
    with pytest.raises(TunableError, match="fifo_batch"):
        simulate("fixed", READER, scheduler="mq-deadline", tunables={"fifo_batch": "many"})
    with pytest.raises(UsageError, match="twice"):
        simulate("fixed", READER, scheduler="deadline:fifo_batch=1", tunables={"fifo_batch": 2})
    with pytest.raises(UsageError, match="seed"):
        simulate("fixed", READER, seed=-1)
    with pytest.raises(SimulationError, match="limit"):
        simulate("fixed", ENDLESS, max_events=1000)
    with pytest.raises(SimulationError, match="timeline"):
        simulate("fixed", ENDLESS, timeline=True, max_timeline_bytes=1000)


def _requests(*, timeline: bool = False) -> list[blklab.SimulationRequest]:
    return [
        plain_request(device, READER, scheduler=scheduler, seed=seed, timeline=timeline)
        for device in ("hdd-7200", "nvme-tlc", "optane")
        for scheduler in ("none", "deadline", "mq-deadline")
        for seed in (1, 2)
    ]


def test_many_give_the_same_on_any_number_of_threads() -> None:
    one_by_one = [
        simulate(one.target, one.workload, scheduler=one.scheduler, seed=one.seed) for one in _requests()
    ]
    for workers in (1, 2, 7, None):
        assert blklab.simulate_many(_requests(), workers=workers) == one_by_one
    recorded = blklab.simulate_many(_requests(timeline=True), workers=3)
    again = blklab.simulate_many(_requests(timeline=True), workers=1)
    for first, second in zip(recorded, again, strict=True):
        assert first.timeline is not None
        assert second.timeline is not None
        assert first.timeline.requests.tobytes() == second.timeline.requests.tobytes()
        assert first.jobs == second.jobs


def test_none_and_one_of_many() -> None:
    assert blklab.simulate_many([]) == []
    with pytest.raises(UsageError, match="workers"):
        blklab.simulate_many(_requests(), workers=0)


def test_the_first_mistake_of_many_decides_whatever_the_threads() -> None:
    good = plain_request("fixed", READER)
    late = plain_request("fixed", READER, tunables={"no_such": 1}, scheduler="deadline")
    early = plain_request("fixed", ENDLESS, max_events=500_000)
    for workers in (1, 2, 4):
        with pytest.raises(SimulationError, match="500000 events"):
            blklab.simulate_many([good, early, late, late, good], workers=workers)


@pytest.mark.parametrize("many", [False, True])
def test_ctrl_c_ends_a_long_simulation(many: bool) -> None:
    """Without the signal it would not end at all."""
    with pytest.raises(KeyboardInterrupt):
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        if many:
            blklab.simulate_many([plain_request("fixed", ENDLESS)] * 3, workers=2)
        else:
            simulate("fixed", ENDLESS)


COMMAND = """
from blklab import _core
from blklab.cli import main

def announced(simulate):
    def announce_and_simulate(*arguments):
        print("simulating", flush=True)
        return simulate(*arguments)
    return announce_and_simulate

for name in ("simulate", "simulate_many", "simulate_recorded"):
    setattr(_core, name, announced(getattr(_core, name)))
main()
"""


def test_ctrl_c_ends_the_command() -> None:
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            COMMAND,
            "run",
            "sim:fixed,latency=1us",
            "random-read-4k-qd32",
            "--runtime",
            "10h",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "simulating\n"
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 130
    assert "interrupted by SIGINT" in said


def test_other_threads_run_meanwhile() -> None:
    """Another thread ends the simulation, which it could not if a simulation kept Python's lock."""

    def interrupt() -> None:
        for _ in range(10):
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        threading.Thread(target=interrupt).start()
        # Without the other thread it ends in an error instead.
        simulate("fixed", ENDLESS, max_events=2_000_000_000)


def test_public_names_are_quick_to_import() -> None:
    loaded = "'numpy' in sys.modules"
    code = f"import sys, blklab; assert not {loaded}; blklab.simulate; assert {loaded}"
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="nonsense"):
        _ = getattr(blklab, "nonsense")  # noqa: B009 - the type checker knows better
