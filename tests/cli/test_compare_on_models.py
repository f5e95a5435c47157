"""`blklab compare` and `blklab run` on simulated devices: contract for machines, repeatability, resuming."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from blklab.cli import run
from blklab.errors import ExitCode
from blklab.experiment import blocks
from blklab.quantities.units import NS_PER_SECOND
from command_runs import json_of
from waiting import PATIENCE_SECONDS, wait_until

JOB = (
    "; purpose: Random reads.\n[reader]\nrw=randread\nbs=4k\ndirect=1\nioengine=libaio\niodepth=8\n"
    "time_based\nruntime=200ms\n"
)
DEVICE = "sim:fixed,latency=200us,depth=4,jitter=40us"
FREE = ("--machine", "zero-cpu-time")


def test_compare_keeps_its_contract(capsys: pytest.CaptureFixture[str], job: str) -> None:
    document = json_of(
        capsys, "compare", DEVICE, "-w", job, "-s", "none,mq-deadline", "--blocks", "3", "--seed", "5"
    )
    assert document["schema"] == "blklab.compare/1"
    assert document["target"] == DEVICE
    assert document["blocks"] == 3
    keys = {"scheduler", "workload", "metric", "unit", "n", "mean", "ci_low", "ci_high"}
    assert all(keys <= result.keys() for result in document["results"])
    assert {(result["scheduler"], result["n"]) for result in document["results"]} == {
        ("none", 3),
        ("mq-deadline", 3),
    }
    assert document["verdict"]["status"] in {"best", "equal", "undecided"}
    assert {"status", "best", "text"} <= document["verdict"].keys()
    assert len([c for c in document["comparisons"] if c["metric"] == "iops"]) == 1


def test_the_same_seed_gives_the_same_figures(capsys: pytest.CaptureFixture[str], job: str) -> None:
    arguments = ("compare", DEVICE, "-w", job, "-s", "none,mq-deadline", "--blocks", "3")
    first, second = json_of(capsys, *arguments, "--seed", "5"), json_of(capsys, *arguments, "--seed", "5")
    other = json_of(capsys, *arguments, "--seed", "6")
    assert first["results"] == second["results"]
    assert first["comparisons"] == second["comparisons"]
    assert first["run"] != second["run"]
    assert first["results"] != other["results"]


def test_run_keeps_its_contract_and_repeats_to_the_byte(capsys: pytest.CaptureFixture[str], job: str) -> None:
    arguments = ["run", DEVICE, job, "--scheduler", "mq-deadline", "--tunable", "fifo_batch=1", "--queue",
                 "nr_requests=16", "--seed", "3", "--json", "-"]  # fmt: skip
    assert run(arguments) == 0
    first = capsys.readouterr().out
    assert run(arguments) == 0
    assert capsys.readouterr().out == first
    document = json.loads(first)
    assert document["schema"] == "blklab.run/1"
    assert (document["scheduler"], document["tunables"]) == ("mq-deadline", {"fifo_batch": "1"})
    reader = document["jobs"][0]
    assert reader["name"] == "reader"
    assert reader["iops"] * 4096 == pytest.approx(reader["bytes_per_second"])
    assert set(reader["latency_us"]) == {"mean", "p50", "p99", "p99_9", "max"}
    assert document["settings"]["fixed/iosched/fifo_batch"] == "1"
    assert document["settings"]["fixed/nr_requests"] == "16"
    assert document["engine"]["name"] == "blksim"


def test_multiplied_jobs_keep_their_section_s_name(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    job = tmp_path / "many.fio"
    job.write_text(JOB.replace("[reader]", "[reader]\nnumjobs=3"))
    document = json_of(
        capsys, "run", "sim:fixed,latency=200us,depth=64", str(job), "--scheduler", "none", *FREE
    )
    assert [(entry["name"], entry["clones"]) for entry in document["jobs"]] == [("reader", 3)]
    assert document["jobs"][0]["iops"] == pytest.approx(3 * 8 / 200e-6, rel=0.02)


def test_a_fixed_device_gives_depth_over_latency(capsys: pytest.CaptureFixture[str], job: str) -> None:
    document = json_of(
        capsys, "run", "sim:fixed,latency=200us,depth=4", job, "--scheduler", "none", "--runtime", "1s", *FREE
    )
    assert document["jobs"][0]["iops"] == pytest.approx(20_000, rel=0.001)


def test_control_groups_limit_simulated_jobs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    job = tmp_path / "limited.fio"
    job.write_text(JOB.replace("[reader]", "[reader]\ncgroup=batch"))
    arguments = ("run", DEVICE, str(job), "--scheduler", "none", "--runtime", "4s")
    document = json_of(capsys, *arguments, "--cgroup", "batch:io.max=riops=500")
    assert document["jobs"][0]["iops"] == pytest.approx(500, rel=0.03)


def test_the_report_for_people(capsys: pytest.CaptureFixture[str], job: str, tmp_path: Path) -> None:
    html = tmp_path / "report.html"
    code = run(["compare", DEVICE, "-w", job, "-s", "none,mq-deadline", "--blocks", "3", "--html", str(html)])
    captured = capsys.readouterr()
    assert code == 0
    assert "equal within 2 %" in captured.out.replace("\n", " ")
    assert f"All figures and charts: {html}" in captured.out.replace("\n", " ")
    assert "<html" in html.read_text(encoding="utf-8")


def test_stored_runs_are_listed_and_analysed_again(capsys: pytest.CaptureFixture[str], job: str) -> None:
    document = json_of(capsys, "compare", DEVICE, "-w", job, "-s", "none,mq-deadline", "--blocks", "3")
    assert run(["runs"]) == 0
    assert document["run"] in capsys.readouterr().out
    assert run(["report", "latest", "--json", "-"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again == document
    assert run(["report", document["run"], "--margin", "0.5", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["margin"] == 0.5
    assert run(["runs", "--remove", document["run"]]) == 0
    assert run(["report", document["run"]]) == 2


def test_an_experiment_is_extended_by_resuming_it(capsys: pytest.CaptureFixture[str], job: str) -> None:
    arguments = ("compare", DEVICE, "-w", job, "-s", "none,mq-deadline", "--seed", "5")
    short = json_of(capsys, *arguments, "--blocks", "2")
    extended = json_of(capsys, "compare", "--resume", short["run"], "--blocks", "4")
    at_once = json_of(capsys, *arguments, "--blocks", "4")
    assert extended["run"] == short["run"]
    assert extended["results"] == at_once["results"]


def test_resuming_changes_nothing_but_the_length(capsys: pytest.CaptureFixture[str], job: str) -> None:
    short = json_of(capsys, "compare", DEVICE, "-w", job, "-s", "none,mq-deadline", "--blocks", "2")
    assert run(["compare", "--resume", short["run"], "--seed", "9"]) == 2
    assert "cannot change seed" in capsys.readouterr().err


def test_an_interrupted_comparison_keeps_what_it_has_and_goes_on(job: str, tmp_path: Path) -> None:
    """A signal during a run: exit code 130, samples kept, the resumed run equals an undisturbed one."""
    store = str(tmp_path / "runs.sqlite")
    blklab = [sys.executable, "-m", "blklab"]
    common = ["-w", job, "-s", "none,mq-deadline", "--seed", "5", "--store", store, "--runtime", "3s"]
    process = subprocess.Popen(
        [*blklab, "compare", DEVICE, *common, "--blocks", "100000"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip

    def stored_runs() -> list[dict[str, Any]]:
        listing = subprocess.run(
            [*blklab, "runs", "--json", "--store", store], capture_output=True, text=True, check=False
        )
        runs: list[dict[str, Any]] = json.loads(listing.stdout)["runs"] if listing.returncode == 0 else []
        return runs

    wait_until(
        lambda: any(stored["samples"] >= 5 for stored in stored_runs()), "five runs are kept", process=process
    )
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 130, errors
    assert "continue with: blklab compare --resume" in errors
    assert "what is known so far: blklab report" in errors
    runs = stored_runs()
    assert runs[0]["state"] == "interrupted"
    blocks = str(runs[0]["samples"] // 2 + 3)
    resume = [
        *blklab,
        "compare",
        "--resume",
        runs[0]["run_id"],
        "--blocks",
        blocks,
        "--store",
        store,
        "--json",
        "-",
    ]
    resumed = json.loads(subprocess.run(resume, capture_output=True, text=True, check=True).stdout)
    undisturbed = [*blklab, "compare", DEVICE, *common, "--blocks", blocks, "--json", "-"]
    whole = json.loads(subprocess.run(undisturbed, capture_output=True, text=True, check=True).stdout)
    assert resumed["results"] == whole["results"]


def test_one_scheduler_after_another_is_warned_of(capsys: pytest.CaptureFixture[str], job: str) -> None:
    arguments = ["compare", DEVICE, "-w", job, "-s", "none,mq-deadline", "--blocks", "3"]
    fixed = json_of(capsys, *arguments, "--order", "by-scheduler")
    assert any("in one stretch" in one for one in fixed["warnings"])
    randomised = json_of(capsys, *arguments)
    assert not any("in one stretch" in one for one in randomised["warnings"])
    assert run([*arguments[:-2], "--order", "by-scheduler", "-q"]) == ExitCode.USAGE
    assert "needs a fixed number of blocks" in capsys.readouterr().err


def test_a_budget_decides_the_number_of_blocks(
    capsys: pytest.CaptureFixture[str], job: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a clock that moves by a minute with every reading, however fast this machine is."""
    looks = itertools.count(time.monotonic_ns(), 60 * NS_PER_SECOND)
    monkeypatch.setattr(blocks, "time", SimpleNamespace(monotonic_ns=lambda: next(looks)))
    document = json_of(capsys, "compare", DEVICE, "-w", job, "-s", "none,mq-deadline", "--budget", "1h")
    assert 2 <= document["blocks"] <= 60


def test_a_specification_file(capsys: pytest.CaptureFixture[str], job: str, tmp_path: Path) -> None:
    spec = tmp_path / "experiment.toml"
    spec.write_text(
        f'targets = ["{DEVICE}", "sim:hdd-7200"]\nschedulers = ["none", "deadline"]\n'
        'workloads = ["reads.fio"]\nblocks = 3\n'
    )
    assert run(["compare", "--spec", str(spec), "--json", "-", "--quiet"]) == 0
    documents = json.loads(capsys.readouterr().out)["documents"]
    assert [document["target"] for document in documents] == [DEVICE, "sim:hdd-7200"]


def test_dry_run_prints_commands_and_stores_nothing(capsys: pytest.CaptureFixture[str], job: str) -> None:
    assert run(["compare", DEVICE, "-w", job, "-s", "none,mq-deadline", "--dry-run"]) == 0
    assert capsys.readouterr().out.count("blklab run sim:fixed") == 2
    assert run(["runs", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"] == []


def test_a_device_without_a_queue_offers_no_scheduler(capsys: pytest.CaptureFixture[str], job: str) -> None:
    assert run(["compare", "sim:ramdisk", "-w", job]) == ExitCode.USAGE
    assert "needs two schedulers, got only none" in capsys.readouterr().err


def test_the_shipped_workloads_run_on_every_profile(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["workloads", "--json"]) == 0
    entries = json.loads(capsys.readouterr().out)["workloads"]
    names = [entry["name"] for entry in entries if entry["jobs"]]
    assert len(names) >= 9
    for profile in ("hdd-7200", "ssd-sata", "nvme-tlc"):
        for name in names:
            document = json_of(capsys, "run", f"sim:{profile}", name, "--runtime", "300ms")
            assert all(job["ios"] > 0 for job in document["jobs"]), (profile, name)


def test_models_run_on_an_ordinary_machine_unless_told_otherwise(
    capsys: pytest.CaptureFixture[str], job: str
) -> None:
    arguments = ("compare", "sim:nvme-tlc", "-w", job, "-s", "none,bfq", "-n", "3", "-q")
    by_default = json_of(capsys, *arguments)
    # The usual costs go without saying in the line that every report has.
    described = by_default["target_description"]
    assert described["summary"].endswith(", on 8 processors")
    assert described["details"]["processors"] == "8 processors with the costs of ordinary"
    named = json_of(capsys, *arguments, "--machine", "ordinary")
    assert named["results"] == by_default["results"]
    assert by_default["verdict"]["status"] == "best"
    free = json_of(capsys, *arguments, *FREE)
    assert "computing takes no time" in free["target_description"]["summary"]
    assert free["verdict"]["status"] == "equal"
