"""`blklab tune` on the command line."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from blklab.backends.sim import SimSession
from blklab.cli import run
from blklab.errors import InterruptedRunError
from blklab.execution.blocks import Observer
from blklab.execution.pipeline import compare
from blklab.execution.tuning import tuning
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import RunSample
from blklab.records.store import Store
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.plan import Cell
from command_runs import json_of
from reader_beside_writer import reader_beside_writer

JOB = reader_beside_writer(runtime="1s", size="64m")


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


def test_an_interrupted_confirmation_is_kept(
    job: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(self: SimSession, cell: Cell) -> RunSample:
        raise InterruptedRunError(signal.SIGINT, "interrupted by SIGINT")

    def begun(spec: ExperimentSpec, store: Store, observer: Observer) -> ExperimentRecord:
        monkeypatch.setattr(SimSession, "run", stopped)
        return compare(spec, store, observer)

    monkeypatch.setattr(tuning, "compare", begun)
    arguments = ["sim:ssd-sata", "-w", job, "-s", "mq-deadline", "--vary", "async_depth,max_sectors_kb"]
    assert run(["tune", *arguments, "-n", "3", "-q"]) == 128 + signal.SIGINT
    said = capsys.readouterr().err
    assert "0 runs kept as" in said
    assert "continue with: blklab compare --resume" in said
