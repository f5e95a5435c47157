"""Workloads within which schedulers can and cannot take turns."""

from __future__ import annotations

import pytest

from blklab.spec.experiment import Conditions
from blklab.spec.permits import why_not_switched
from blklab.spec.workloads import load_workload, parse_workload, shipped_workloads

LOAD = {"rw": "randread", "size": "1g", "direct": "1", "time_based": "1", "runtime": "2s"}


def reason(*jobs: dict[str, str], head: str = "", conditions: Conditions | None = None) -> str | None:
    sections = [
        f"[job{number}]\n" + "".join(f"{name}={value}\n" for name, value in job.items())
        for number, job in enumerate(jobs)
    ]
    workload = parse_workload(head + "".join(sections), name="jobs", source="jobs")
    return why_not_switched(workload, "sim", conditions or Conditions())


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"stonewall": "1"}, "stonewall"),
        ({"startdelay": "1s"}, "startdelay"),
        ({"time_based": "0"}, "time_based"),
        ({"rw": "randwrite", "fsync": "1"}, "fsync"),
        ({"rw": "randwrite", "fdatasync": "32"}, "fdatasync"),
        ({"rw": "randwrite", "sync": "dsync"}, "sync"),
        ({"rw": "randwrite", "direct": "0"}, "page cache"),
    ],
)
def test_a_job_that_is_not_one_steady_load_is_refused(changes: dict[str, str], word: str) -> None:
    assert word in str(reason(LOAD, LOAD | changes))


def test_rates_and_pauses_are_steady_loads() -> None:
    assert (
        reason(LOAD | {"rate_iops": "100", "fsync": "0", "sync": "none"}, LOAD | {"thinktime": "1ms"}) is None
    )


def test_different_runtimes_are_refused_unless_one_replaces_them() -> None:
    jobs = (LOAD, LOAD | {"runtime": "3s"})
    assert "runtimes" in str(reason(*jobs))
    assert reason(*jobs, conditions=Conditions(runtime_ns=1_000_000_000)) is None


@pytest.mark.parametrize(
    ("group", "setting"), [("/", "io.cost.qos"), ("batch", "io.latency"), ("batch", "ioband.weight")]
)
def test_controllers_that_adapt_for_seconds_are_refused(group: str, setting: str) -> None:
    assert f"{setting} of {group}" in str(
        reason(LOAD, conditions=Conditions(cgroups={group: {setting: "1"}}))
    )
    assert reason(LOAD, conditions=Conditions(cgroups={group: {"io.max": "1"}})) is None


def test_a_metric_of_syncs_is_refused() -> None:
    assert "syncs" in str(reason(LOAD, head="; decide-by: sync_latency_p99\n"))


def test_shipped_workloads() -> None:
    refused = {
        name
        for name in shipped_workloads()
        if why_not_switched(load_workload(name), "sim", Conditions()) is not None
    }
    assert refused == {"buffered-sequential-read", "cached-read", "write-ahead-log"}
