"""Loads beside commands: jobs without an end of their own, which say when they begin."""

from __future__ import annotations

import pytest

from blklab.errors import JobFileError
from blklab.linux.load.beside import beside_text, endless
from blklab.linux.scratch.layout import regions_in_directory
from blklab.spec.workloads import load_workload, parse_workload, shipped_workloads

SECOND_NS = 1_000_000_000


def text_of(jobs: str) -> list[str]:
    workload = endless(parse_workload(jobs, name="load", source="load.fio"))
    text = beside_text(
        workload,
        regions_in_directory(workload),
        seed=7,
        folder="data",
        group_joins={"group": "/sys/group/procs"},
        longest_ns=60 * SECOND_NS,
    )
    return text.splitlines()


def test_no_job_ends_by_itself() -> None:
    lines = text_of(
        "[global]\nsize=1m\nrw=randread\n[timed]\ntime_based\nruntime=2s\nramp_time=1s\n"
        "[counted]\nnumber_ios=5\nloops=2\nio_size=4k\n"
    )
    assert lines.count("time_based=1") == 2
    assert lines.count("runtime=60000000us") == 2
    assert not [line for line in lines if line.startswith(("number_ios", "loops", "io_size", "ramp_time"))]


def test_each_clone_says_when_it_begins_and_joins_its_group() -> None:
    lines = text_of("[a]\nsize=1m\nrw=read\nnumjobs=2\n[b]\nsize=1m\nrw=write\ncgroup=group\n")
    assert [line for line in lines if line.startswith("exec_prerun")] == [
        "exec_prerun=echo $PPID | tee started.1",
        "exec_prerun=echo $PPID | tee started.2",
        "exec_prerun=echo $PPID | tee /sys/group/procs started.3",
    ]


@pytest.mark.parametrize(("option", "line"), [("stonewall", 5), ("wait_for=a", 5)])
def test_a_job_that_waits_for_another_is_refused(option: str, line: int) -> None:
    with pytest.raises(JobFileError, match="b would never begin") as raised:
        text_of(f"[a]\nsize=1m\nrw=read\n[b]\n{option}\nsize=1m\nrw=read\n")
    assert raised.value.line == line


@pytest.mark.parametrize("name", ["ten-readers", "five-readers-five-writers"])
def test_the_loads_of_the_s_suite_have_ten_processes(name: str) -> None:
    assert name in shipped_workloads()
    workload = load_workload(name)
    assert sum(job.numjobs for job in endless(workload).jobs) == 10
    assert all(job.sequential for job in workload.jobs)
