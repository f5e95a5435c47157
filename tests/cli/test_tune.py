"""`blklab tune` on the command line."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from blklab.backends.sim import SimSession
from blklab.cli import run
from blklab.errors import InterruptedRunError
from blklab.experiment.blocks import Observer
from blklab.experiment.pipeline import compare
from blklab.labs.tuning import tuning
from blklab.labs.tuning.document import ConfirmedCandidatePart, TuneDocument
from blklab.labs.tuning.text import next_step
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


def _document(*, confirmed: bool, on: str) -> TuneDocument:
    found = ConfirmedCandidatePart(
        choice="bfq:slice_idle=0",
        gains=[],
        apply_command="blklab apply bfq:slice_idle=0 --device /srv" if on == "/srv" else None,
        compare_command=None if on == "/srv" else "blklab compare DIRECTORY -s none,bfq:slice_idle=0 -w mine",
    )
    return TuneDocument(
        target=on,
        model="sim:ssd-sata",
        default="none",
        seed=1,
        candidates=1,
        simulated_runs=1,
        dimensions=[],
        searched=[],
        trials=[],
        finalists=[],
        confirmation=None,
        recommendation=found if confirmed else None,
    )


def test_the_next_step_is_to_apply_what_a_disk_confirmed_and_to_test_what_a_model_did() -> None:
    assert next_step(_document(confirmed=True, on="/srv")) == (
        "sudo blklab apply bfq:slice_idle=0 --device /srv"
    )
    assert next_step(_document(confirmed=True, on="sim:ssd-sata")) == (
        "sudo blklab compare DIRECTORY -s none,bfq:slice_idle=0 -w mine"
    )
    assert next_step(_document(confirmed=False, on="/srv")) is None


def test_a_tuning_on_a_model_ends_with_the_comparison_on_a_disk(
    capsys: pytest.CaptureFixture[str], job: str, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    arguments = ["sim:ssd-sata", "-w", job, "-s", "mq-deadline,none", "--vary", "async_depth,max_sectors_kb"]
    assert run(["tune", *arguments, "--trials", "16", "-n", "3", "--html", str(page), "-q"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("next: sudo blklab compare DIRECTORY -s mq-deadline,")
    assert last.endswith(f" -w {job}")
    assert last.removeprefix("next: ") in page.read_text()


def test_a_dry_run_lists_the_space_and_tries_nothing(capsys: pytest.CaptureFixture[str], job: str) -> None:
    arguments = ["sim:ssd-sata", "-w", job, "-s", "mq-deadline", "--vary", "fifo_batch", "--dry-run"]
    assert run(["tune", *arguments]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "7 candidates, searched on sim:ssd-sata",
        "mq-deadline",
        "  fifo_batch: 1 2 4 8 default 32 64",
    ]


def _in_groups(folder: Path) -> str:
    path = folder / "groups.fio"
    path.write_text(
        JOB.replace("[reader]", "[reader]\ncgroup=front").replace("[writer]", "[writer]\ncgroup=back")
    )
    return str(path)


def test_a_dry_run_lists_the_settings_of_groups(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    asked = ["tune", "sim:ssd-sata", "-w", _in_groups(tmp_path), "-s", "none,bfq", "--vary", "io.bfq.weight"]
    assert run([*asked, "--dry-run"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "9 candidates, searched on sim:ssd-sata",
        "none",
        "bfq",
        "  back/io.bfq.weight: 10 20 50 default 200 300 500 1000",
    ]


def test_a_tuning_of_groups_from_search_to_page(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    arguments = [
        "sim:ssd-sata",
        "-w",
        _in_groups(tmp_path),
        "-s",
        "none",
        "--vary",
        "io.max,/io.cost.qos.max",
    ]
    document = json_of(capsys, "tune", *arguments, "--trials", "20", "-n", "3", "--html", str(page), "-q")
    assert document["candidates"] == 5 * 7
    choice = document["recommendation"]["choice"]
    assert "back/io.max.wbps=" in choice or "/io.cost.qos.enable=1" in choice
    assert choice in page.read_text()
    assert run(["compare", *arguments[:3], "-s", f"none,{choice}", "-n", "4", "-q"]) == 0
    assert f"`{choice}` is best" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("vary", "said"),
    [("io.max", "no job of the load is in a control group"), ("/io.cost.qos.min", "no job of the load")],
)
def test_groups_that_the_load_lacks(
    vary: str, said: str, capsys: pytest.CaptureFixture[str], job: str
) -> None:
    assert run(["tune", "sim:ssd-sata", "-w", job, "--vary", vary, "--dry-run"]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


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
