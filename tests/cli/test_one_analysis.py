"""An experiment is analysed once, however many reports it has."""

from __future__ import annotations

from pathlib import Path

import pytest

from blklab.analysis import verdict
from blklab.analysis.verdict import Analysis
from blklab.cli import comparing, run
from blklab.cli import report as report_command
from blklab.records.experiment import ExperimentRecord

JOB = (
    "; purpose: Random reads.\n[reader]\nrw=randread\nbs=4k\ndirect=1\nioengine=libaio\niodepth=4\n"
    "time_based\nruntime=100ms\n"
)


def test_each_command_analyses_once(tmp_path: Path, job: str, monkeypatch: pytest.MonkeyPatch) -> None:
    analysed: list[str] = []

    def counted(record: ExperimentRecord) -> Analysis:
        analysed.append(record.run_id)
        return verdict.analyse(record)

    for module in (comparing, report_command):
        monkeypatch.setattr(module, "analyse", counted)
    outputs = ["--json", str(tmp_path / "a.json"), "--html", str(tmp_path / "a.html")]
    device = "sim:fixed,latency=200us,depth=4"
    assert run(["compare", device, "-w", job, "-s", "none,bfq", "--blocks", "2", "-q", *outputs]) == 0
    assert len(analysed) == 1
    assert run(["report", "latest", *outputs]) == 0
    assert len(analysed) == 2
