"""Experiments on models that stop by themselves: the pipeline, the store and the command line together."""

from __future__ import annotations

import json
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from blklab.analysis.verdict import analyse
from blklab.cli import run
from blklab.errors import InterruptedRunError, LockedError
from blklab.experiment.blocks import Progress
from blklab.experiment.outlook import Outlook, Shortage
from blklab.experiment.pipeline import compare
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import RunSample
from blklab.records.store import Store
from blklab.report.documents.comparison import compare_document
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.goals import parse_goal
from blklab.spec.machines import load_machine
from blklab.spec.request import SpecValues, build_specs

JOB = (
    "; purpose: Random reads.\n[reader]\nrw=randread\nbs=4k\ndirect=1\nioengine=libaio\niodepth=8\n"
    "time_based\nruntime=100ms\n"
)
DEVICE = "sim:fixed,latency=200us,depth=4,jitter=40us"


class Listener:
    """Follows an experiment, and may abort it."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.stop_after = stop_after
        self.heard: list[Progress] = []
        self.run_id = ""

    def announce(self, line: str) -> None:
        pass

    def begun(self, record: ExperimentRecord) -> None:
        self.run_id = record.run_id

    def progressed(self, progress: Progress) -> None:
        if self.stop_after is not None and len(self.heard) == self.stop_after:
            raise InterruptedRunError(signal.SIGINT, "enough")
        self.heard.append(progress)

    def falls_short(self, shortage: Shortage, schedulers: int) -> None:
        """Ignored."""

    def planned(self, outlook: Outlook) -> None:
        """Ignored."""

    def measured(self, sample: RunSample) -> None:
        pass


def _spec(job: str, schedulers: str, budget: str | None = None, target: str = DEVICE) -> ExperimentSpec:
    values = SpecValues(targets=[target], workloads=[job], schedulers=[schedulers], budget=budget, seed=4)
    return build_specs(values)[0]


def _figures(record: ExperimentRecord) -> list[tuple[Any, ...]]:
    return [(sample.cell, sample.jobs) for sample in record.samples]


def test_equal_schedulers_stop_long_before_the_budget(tmp_path: Path, job: str) -> None:
    with Store.opened(str(tmp_path / "runs.sqlite")) as store:
        record = compare(_spec(job, "a=none,b=none"), store, Listener())
    assert record.state == "complete"
    assert record.complete_blocks < 10
    assert analyse(record).verdict.status == "equal"


@pytest.mark.parametrize("stop_after", [1, 7, 14])
def test_a_resumed_experiment_is_the_one_that_was_never_broken_off(
    tmp_path: Path, job: str, stop_after: int
) -> None:
    """On an hdd one of bfq and none drops out early; complete and resumed experiments take the same steps."""
    spec = _spec(job, "none,bfq,deadline,cfq", "10blocks", "sim:hdd-7200")
    with Store.opened(str(tmp_path / "runs.sqlite")) as store:
        whole = compare(spec, store, Listener())
        listener = Listener(stop_after)
        with pytest.raises(InterruptedRunError):
            compare(spec, store, listener)
        broken = store.load(listener.run_id)
        assert len(broken.samples) == stop_after
        resumed = compare(broken.spec, store, Listener(), resumed=broken)
    assert _figures(resumed) == _figures(whole)


def test_an_experiment_that_is_under_way_is_not_continued_beside_itself(tmp_path: Path) -> None:
    spec = _spec("reader-beside-writers", "none,bfq", "2blocks", "sim:hdd-7200")
    with Store.opened(str(tmp_path / "runs.sqlite")) as store:
        listener = Listener(1)
        with pytest.raises(InterruptedRunError):
            compare(spec, store, listener)
        store.set_state(listener.run_id, "running")  # by this process, which lives
        running = store.load(listener.run_id)
        with pytest.raises(LockedError, match="still under way"):
            compare(running.spec, store, Listener(), resumed=running)


def test_losers_leave_and_the_report_says_so(tmp_path: Path) -> None:
    spec = _spec("reader-beside-writers", "none,bfq,anticipatory", "12blocks", "sim:hdd-7200")
    # Computing takes no time, so that two of them stay close for long.
    more = {"runtime_ns": 300_000_000, "machine": load_machine("zero-cpu-time")}
    spec = spec.model_copy(update=more)
    with Store.opened(str(tmp_path / "runs.sqlite")) as store:
        record = compare(spec, store, Listener())
    document = compare_document(record, analyse(record))
    counts = {
        label: sum(sample.cell.scheduler == label for sample in record.samples)
        for label in ("none", "bfq", "anticipatory")
    }
    assert min(counts.values()) < max(counts.values()) == record.complete_blocks
    departures = {part.scheduler: part.blocks for part in document.stopping.departures}
    assert departures == {label: n for label, n in counts.items() if n < max(counts.values())}
    assert document.stopping.rule == "settled"


def test_a_small_budget_of_blocks_is_kept(tmp_path: Path, job: str) -> None:
    with Store.opened(str(tmp_path / "runs.sqlite")) as store:
        record = compare(_spec(job, "none,kyber", "2blocks", "sim:hdd-7200"), store, Listener())
    assert record.complete_blocks == 2
    assert analyse(record).verdict.status == "undecided"


def test_progress_tells_what_is_open(tmp_path: Path, job: str) -> None:
    listener = Listener()
    with Store.opened(str(tmp_path / "runs.sqlite")) as store:
        compare(_spec(job, "none,kyber", "3blocks", "sim:hdd-7200"), store, listener)
    assert all(progress.runs_planned is None for progress in listener.heard)
    assert [question.workload for question in listener.heard[-1].open] == ["reads"]
    question = listener.heard[-1].open[0]
    assert question.leader in ("none", "kyber")
    assert question.lead is not None
    assert question.lead >= 0


def test_dry_run_says_how_long_it_would_go_on(capsys: pytest.CaptureFixture[str], job: str) -> None:
    assert run(["compare", DEVICE, "-w", job, "-s", "none,kyber", "--dry-run"]) == 0
    assert "blocks until every question is settled, at most 18 blocks" in capsys.readouterr().out
    assert run(["compare", DEVICE, "-w", job, "-s", "none,kyber", "--budget", "90s", "--dry-run"]) == 0
    assert "blocks until every question is settled, at most 1 min 30 s" in capsys.readouterr().out
    assert run(["compare", DEVICE, "-w", job, "-s", "none,kyber", "--blocks", "4", "--dry-run"]) == 0
    assert "4 blocks, each" in capsys.readouterr().out


def test_resuming_keeps_the_rule(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, job: str
) -> None:
    monkeypatch.setenv("BLKLAB_STORE", str(tmp_path / "runs.sqlite"))
    arguments = ["compare", "sim:hdd-7200", "-w", job, "-s", "none,kyber", "--quiet", "--json", "-"]
    assert run([*arguments, "--budget", "2blocks"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert run(["compare", "--resume", first["run"], "--blocks", "9", "--quiet"]) == 2
    assert "--budget 9blocks" in capsys.readouterr().err
    assert run(["compare", "--resume", first["run"], "--budget", "4blocks", "--quiet", "--json", "-"]) == 0
    longer = json.loads(capsys.readouterr().out)
    assert (first["blocks"], longer["blocks"]) == (2, 4)
    assert longer["stopping"]["rule"] == "settled"


def test_a_fixed_number_goes_on_as_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, job: str
) -> None:
    monkeypatch.setenv("BLKLAB_STORE", str(tmp_path / "runs.sqlite"))
    arguments = ["compare", DEVICE, "-w", job, "-s", "a=none,b=none", "--quiet", "--json", "-"]
    assert run([*arguments, "--blocks", "2"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert run(["compare", "--resume", first["run"], "--budget", "5blocks", "--quiet", "--json", "-"]) == 0
    longer = json.loads(capsys.readouterr().out)
    assert (longer["blocks"], longer["stopping"]["rule"]) == (5, "fixed")


def test_a_budget_of_time_ends_an_open_race(tmp_path: Path, job: str) -> None:
    listener = Listener()
    with Store.opened(str(tmp_path / "runs.sqlite")) as store:
        record = compare(_spec(job, "none,kyber", "200ms", "sim:hdd-7200"), store, listener)
    assert record.state == "complete"
    assert record.complete_blocks >= 1
    assert listener.heard
    assert all(progress.remaining_ns is not None for progress in listener.heard)


def _purpose(schedulers: str, *, goal: str | None = None, sweeps: list[str] | None = None) -> ExperimentSpec:
    values = SpecValues(
        targets=["sim:hdd-7200"],
        workloads=["random-read-4k-qd32", "reader-beside-writers"],
        schedulers=[schedulers],
        goal=None if goal is None else parse_goal(goal),
        sweeps=sweeps,
        runtime="300ms",
        budget="8blocks",
    )
    return build_specs(values)[0]


def test_a_goal_is_one_race_over_all_workloads(tmp_path: Path) -> None:
    listener = Listener()
    with Store.opened(str(tmp_path / "runs.sqlite")) as store:
        record = compare(_purpose("none,bfq,anticipatory", goal="latency"), store, listener)
    heard = {question.workload for progress in listener.heard for question in progress.open}
    assert heard == {"all workloads"}
    ran = {
        name: Counter(s.cell.scheduler for s in record.samples if s.cell.workload == name)
        for name in ("random-read-4k-qd32", "reader-beside-writers")
    }
    assert ran["random-read-4k-qd32"] == ran["reader-beside-writers"]
    assert min(ran["random-read-4k-qd32"].values()) < 8
    assert analyse(record).goal is not None


def test_nobody_leaves_a_sweep(tmp_path: Path) -> None:
    with Store.opened(str(tmp_path / "runs.sqlite")) as store:
        record = compare(_purpose("anticipatory", sweeps=["bfq:slice_idle=0,8"]), store, Listener())
    for workload in record.spec.workloads:
        ran = Counter(s.cell.scheduler for s in record.samples if s.cell.workload == workload.name)
        assert len(ran) == len(record.spec.schedulers) > 2
        assert len(set(ran.values())) == 1
    effects = [effect for findings in analyse(record).sweeps for effect in findings.effects]
    assert effects
