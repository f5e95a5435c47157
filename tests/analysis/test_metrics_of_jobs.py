"""Shares and ratios of jobs decide like other metrics: in blocks, in slots, in goals, and in reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from blklab.analysis.metrics import METRICS, metric_named
from blklab.analysis.slot_values import SlotValues
from blklab.cli import run
from blklab.errors import ExitCode, UnknownNameError
from blklab.quantities.formatting import metric_title
from blklab.records.samples import DirectionSample, JobSample, LatencyHistogram
from command_runs import json_of

_JOBS = """; purpose: Two readers of different priority.
; decide-by: {metric}
[global]
direct=1
time_based
ramp_time=100ms
runtime=1s
ioengine=psync
readwrite=read
blocksize=64k
size=256m
[high]
filename=high
prio=0
[low]
filename=low
prio=7
"""


def _job(name: str, moved: int) -> JobSample:
    entry = DirectionSample(
        direction="read",
        ios=200,
        bytes=moved,
        runtime_ns=10**9,
        latency=LatencyHistogram(),
    )
    return JobSample(name=name, clones=1, runtime_ns=10**9, directions=[entry])


def test_shares_and_ratios_of_one_run() -> None:
    jobs = [_job("high", 600), _job("low", 200)]
    assert metric_named("share:high").compute(jobs) == pytest.approx(0.75)
    assert metric_named("ratio:high/low").compute(jobs) == pytest.approx(3.0)
    assert metric_named("ratio:high/other").compute(jobs) is None
    assert metric_named("ratio:high/low").compute([jobs[0], _job("low", 0)]) is None


def test_they_have_names_but_are_not_listed() -> None:
    assert "share:high" not in METRICS
    assert metric_title("share:my_job") == "share of my_job"
    assert metric_title("ratio:high/low") == "ratio of high to low"
    for wrong in ("share:", "ratio:high", "part:high"):
        with pytest.raises(UnknownNameError):
            metric_named(wrong)


def test_slots_have_them() -> None:
    entered: dict[tuple[str, int], float] = {}

    def enter(metric: str, scheduler: str, position: int, value: float) -> None:
        if metric == "ratio:high/low":
            entered[scheduler, position] = value

    values = SlotValues(enter, [METRICS["ratio:high/low"]])
    for number in range(16):
        values.add("bfq", number, [_job("high", 600), _job("low", 100)])
    assert set(entered.values()) == {6.0}


def test_a_ratio_decides(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "ionice.fio"
    file.write_text(_JOBS.format(metric="ratio:high/low"))
    asked = ("compare", "sim:hdd-7200", "-w", str(file), "-s", "bfq,none", "--no-why", "--blocks", "6")
    document = json_of(capsys, *asked)
    [decided] = [verdict for verdict in document["verdicts"] if verdict["decides"]]
    assert (decided["metric"], decided["status"], decided["best"]) == ("ratio:high/low", "best", ["bfq"])
    figures = {one["scheduler"]: one for one in document["results"] if one["metric"] == "ratio:high/low"}
    assert figures["bfq"]["mean"] > 2 * figures["none"]["mean"]
    assert run(["report", document["run"], "--html", str(tmp_path / "page.html")]) == ExitCode.OK
    assert "ratio of high to low (to 1, more is better" in capsys.readouterr().out
    assert "ratio of high to low" in (tmp_path / "page.html").read_text()
    assert run(["report", document["run"], "-v"]) == ExitCode.OK
    assert "ratio of high" in capsys.readouterr().out


def test_a_share_is_a_goal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "ionice.fio"
    file.write_text(_JOBS.format(metric="throughput"))
    asked = ("compare", "sim:hdd-7200", "-w", str(file), "-s", "bfq,none", "--no-why", "--blocks", "6")
    document = json_of(capsys, *asked, "--goal", "share:high")
    assert (document["verdict"]["status"], document["verdict"]["best"]) == ("best", ["bfq"])


def test_a_job_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "ionice.fio"
    file.write_text(_JOBS.format(metric="share:middle"))
    assert run(["compare", "sim:hdd-7200", "-w", str(file), "-s", "bfq,none"]) == ExitCode.USAGE
    assert "measures no job 'middle'" in capsys.readouterr().err
