"""`blklab tune` on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from blklab.cli import run
from command_runs import json_of

JOB = """\
; decide-by: latency_p99
; focus: reader
[global]
direct=1
time_based
runtime=1s
size=64m
[reader]
rw=randread
bs=4k
[writer]
rw=write
bs=256k
ioengine=libaio
iodepth=16
"""


def test_a_tuning_from_search_to_page(capsys: pytest.CaptureFixture[str], job: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    arguments = ["sim:ssd-sata", "-w", job, "-s", "mq-deadline,none", "--vary", "async_depth,max_sectors_kb"]
    arguments += ["--trials", "16", "-n", "3", "--html", str(page), "-q"]
    document = json_of(capsys, "tune", *arguments)
    assert document["schema"] == "blklab.tune/1"
    # 4 x 5 candidates of mq-deadline and 5 of none.
    assert (len(document["trials"]), document["candidates"]) == (16, 25)
    assert document["recommendation"]["gains"][0]["outcome"] == "better"
    assert document["confirmation"]["schema"] == "blklab.compare/1"
    assert document["recommendation"]["choice"] in page.read_text()


def test_a_dry_run_lists_the_space_and_tries_nothing(capsys: pytest.CaptureFixture[str], job: str) -> None:
    arguments = ["sim:ssd-sata", "-w", job, "-s", "mq-deadline", "--vary", "fifo_batch", "--dry-run"]
    assert run(["tune", *arguments]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "7 candidates, searched on sim:ssd-sata",
        "mq-deadline",
        "  fifo_batch: 1 2 4 8 default 32 64",
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sim:ssd-sata", "--vary", "no_such"], "there is no setting 'no_such'"),
        (["sim:ssd-sata", "-s", "cfq"], "tuning takes names of schedulers"),
        (["sim:ssd-sata", "--model", "/tmp"], "is not a simulated device"),
        (["sim:ssd-sata", "sim:emmc"], "unexpected extra argument"),
        (["sim:ssd-sata", "--trials", "1"], "trials"),
    ],
)
def test_bad_requests(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], job: str) -> None:
    assert run(["tune", *arguments, "-w", job]) == 2
    assert said in " ".join(capsys.readouterr().err.split())
