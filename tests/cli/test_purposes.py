"""Goals, sweeps and preconditioning on the command line, on simulated devices."""

from __future__ import annotations

from pathlib import Path

import pytest

from blklab.cli import run
from blklab.cli.apply import resolve_run
from blklab.errors import ExitCode, RefusedError
from blklab.records.store import Store
from blklab.testing.experiments import (
    SchedulerBehaviour,
    WorkloadBehaviour,
    make_experiment,
    make_spec,
    make_workload,
)
from command_runs import json_of

JOB = (
    "[reader]\nrw=randread\nbs=4k\ndirect=1\nioengine=libaio\niodepth=4\ntime_based\nruntime=200ms\n"
    "size=64m\n"
)
DISK = "sim:hdd-7200"


def test_a_goal_decides_and_another_can_be_asked_of_the_same_run(
    capsys: pytest.CaptureFixture[str], job: str
) -> None:
    document = json_of(
        capsys,
        "compare",
        DISK,
        "-w",
        job,
        "-s",
        "none,bfq",
        "-n",
        "3",
        "--goal",
        "latency_p99=2,iops=1",
        "--machine",
        "zero-cpu-time",
        "-q",
    )
    assert document["goal"]["goal"] == "latency_p99=2.0,iops=1.0"
    assert document["verdict"]["text"].startswith(("for the goal", "undecided"))
    assert {part["scheduler"] for part in document["goal"]["front"]} == {"none", "bfq"}
    again = json_of(capsys, "report", document["run"], "--goal", "throughput")
    assert again["goal"]["dimensions"] == ["throughput", "latency_p99"]
    assert again["results"] == document["results"]


def test_a_sweep_is_crossed_with_the_defaults_and_resumes(
    capsys: pytest.CaptureFixture[str], job: str
) -> None:
    sweep = "bfq:slice_idle=0,8:low_latency=0"
    document = json_of(capsys, "compare", DISK, "-w", job, "--sweep", sweep, "-n", "3", "-q")
    assert [choice["label"] for choice in document["schedulers"]] == [
        "bfq",
        "bfq:low_latency=0",
        "bfq:slice_idle=0",
        "bfq:slice_idle=0:low_latency=0",
    ]
    (found,) = document["sweeps"]
    assert found["defaults"] == {"slice_idle": "8", "low_latency": "1"}
    assert [(effect["kind"], effect["n"]) for effect in found["effects"]] == [
        ("main", 3),
        ("main", 3),
        ("interaction", 3),
    ]
    more = json_of(capsys, "compare", "--resume", document["run"], "-n", "4", "-q")
    assert more["blocks"] == 4
    assert {effect["n"] for effect in more["sweeps"][0]["effects"]} == {4}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--sweep", "bfq:fifo_batch=1"), "bfq has no tunable 'fifo_batch'"),
        (("--sweep", "bfq"), "names no tunable"),
        (("--sweep", "bfq:slice_idle=long"), "slice_idle"),
        (("--goal", "fast"), "there is no goal 'fast'"),
        (("--goal", "speed=1"), "no metric 'speed'"),
        (("--precondition",), "works only on flash"),
    ],
)
def test_mistakes_are_usage_errors(
    capsys: pytest.CaptureFixture[str], job: str, arguments: tuple[str, ...], said: str
) -> None:
    assert run(["compare", DISK, "-w", job, "-s", "none,bfq", "-q", *arguments]) == ExitCode.USAGE
    assert said in capsys.readouterr().err


def test_preconditioned_flash_is_used_flash(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    writes = tmp_path / "writes.fio"
    writes.write_text(
        JOB.replace("randread", "randwrite").replace("64m", "8g").replace("iodepth=4", "iodepth=32")
    )
    arguments = ("-w", str(writes), "-s", "none,bfq", "-n", "1", "-q", "--runtime", "1s")
    used = json_of(capsys, "compare", "sim:ssd-sata", *arguments, "--precondition")
    named = json_of(capsys, "compare", "sim:ssd-sata,condition=random", *arguments)
    fresh = json_of(capsys, "compare", "sim:ssd-sata,condition=fresh", *arguments)
    assert used["results"] == named["results"] != fresh["results"]
    assert used["target_description"]["details"]["condition"] == "random"
    assert run(["compare", "sim:ssd-sata,condition=fresh", *arguments, "--precondition"]) == ExitCode.USAGE
    assert "condition=fresh" in capsys.readouterr().err


def test_a_withheld_recommendation_is_not_applied(tmp_path: Path) -> None:
    """The refusal comes before any look at this machine."""
    workloads = [make_workload("reads"), make_workload("cached", control=True)]
    record = make_experiment(
        make_spec(("none", "bfq"), workloads, target=str(tmp_path)),
        behaviours={"bfq": SchedulerBehaviour(2.0)},
        workloads={"cached": WorkloadBehaviour(schedulers={"bfq": SchedulerBehaviour(1.4)})},
    )
    url = str(tmp_path / "runs.sqlite")
    with Store.opened(url) as store:
        store.begin(record)
        for sample in record.samples:
            store.add_sample(record.run_id, sample)
    with pytest.raises(RefusedError, match="No recommendation: the control cached differs"):
        resolve_run(record.run_id, url, force=False)
