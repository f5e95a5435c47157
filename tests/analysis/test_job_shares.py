"""Rates, shares and ratios of jobs."""

from __future__ import annotations

from pathlib import Path

import pytest

from blklab.analysis.job_shares import job_shares
from blklab.analysis.verdict import analyse
from blklab.cli import run
from blklab.report.documents.comparison import compare_document
from blklab.report.documents.job_shares import JobRatePart, JobSharesPart
from blklab.report.summary.job_shares import job_tables
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


def test_rates_and_shares_tell_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Who is ahead under mq-deadline is chance in each run, so medians of rates and of shares contradict.
    job = tmp_path / "longer.fio"
    job.write_text(JOB.replace("runtime=2s", "runtime=10s").replace("size=4g", "size=10g"))
    words = ("compare", "sim:hdd-7200", "-w", str(job), "-s", "bfq,mq-deadline", "-n", "5", "-q")
    found = next(part for part in json_of(capsys, *words)["jobs"] if part["scheduler"] == "mq-deadline")
    high, low = found["rates"]
    assert high["share"] / low["share"] == pytest.approx(
        high["bytes_per_second"] / low["bytes_per_second"], rel=0.1
    )


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.881, "88 %"), (0.9973, "99.7 %"), (0.0027, "0.3 %"), (7e-6, "0.001 %"), (1.0, "100 %"), (0.0, "0 %")],
)
def test_a_job_that_gets_hardly_anything_is_not_shown_with_nothing(share: float, text: str) -> None:
    part = JobSharesPart(
        workload="reads",
        scheduler="bfq",
        rates=[JobRatePart(job="a", bytes_per_second=1e6, share=share)],
        ratios=[],
    )
    document = compare_document(record := make_experiment(), analyse(record)).model_copy(
        update={"jobs": [part]}
    )
    (table,) = job_tables(document)
    assert table.rows == [("a", [f"1.00 MB/s ({text})"])]


def test_a_workload_of_one_job_has_no_shares() -> None:
    assert job_shares(make_experiment()) == []
