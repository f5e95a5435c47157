"""Rates, shares and ratios of jobs."""

from __future__ import annotations

import pytest

from blklab.analysis.job_shares import job_shares
from blklab.cli import run
from blklab.testing.experiments import make_experiment
from command_runs import json_of

JOB = """\
[global]
rw=read
bs=1m
direct=1
ioengine=libaio
iodepth=4
size=4g
time_based
runtime=2s
prioclass=2
[high]
prio=0
[low]
prio=7
"""


def test_bfq_divides_by_level_and_the_ratio_has_an_interval(
    job: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("compare", "sim:hdd-7200", "-w", job, "-s", "mq-deadline,bfq", "-n", "3", "-q")
    found = {part["scheduler"]: part for part in json_of(capsys, *words)["jobs"]}
    (ratio,) = found["bfq"]["ratios"]
    assert (ratio["first"], ratio["second"]) == ("high", "low")
    assert 4 < ratio["low"] < ratio["ratio"] < ratio["high"] < 16
    shares = [rate["share"] for rate in found["bfq"]["rates"]]
    assert sum(shares) == pytest.approx(1, abs=0.01)
    assert shares[0] > 0.75
    assert found["mq-deadline"]["ratios"][0]["ratio"] < ratio["low"]
    assert run(["report", "-v"]) == 0
    printed = capsys.readouterr().out
    assert "high : low" in printed
    assert "bytes of each job" in printed


def test_a_workload_of_one_job_has_no_shares() -> None:
    assert job_shares(make_experiment()) == []
