"""Runs on a disk of the test's own, recorded to say why one scheduler is better."""

from __future__ import annotations

from pathlib import Path

import pytest

from blklab.analysis.verdict import analyse
from blklab.analysis.why import Explained, causes_of
from blklab.cli import run
from blklab.errors import ExitCode
from blklab.experiment import observation
from blklab.records.store import Store

pytestmark = pytest.mark.root

FEW = "none:nr_requests=4"
JOB = (
    "[reader]\nrw=randread\nbs=4k\nsize=16m\ndirect=1\nioengine=libaio\niodepth=32\ntime_based\n"
    "runtime=300ms\n"
)


class _Silent:
    """Hears of progress and notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def __getattr__(self, _: str) -> object:
        return lambda *_, **__: None

    def announce(self, note: str) -> None:
        self.notes.append(note)


@pytest.fixture
def compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store with a short comparison on a loop device in memory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deep.fio").write_text(JOB)
    store = str(tmp_path / "runs.sqlite")
    words = ["compare", "loop:32m,dir=/dev/shm", "-w", "./deep.fio", "-s", f"none,{FEW}", "-n", "2", "-q"]
    assert run([*words, "--no-model-answer", "--store", store]) == ExitCode.OK
    return Store.opened(store).__enter__()


def test_a_recorded_run_counts_what_was_in_the_device(
    compared: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = [Explained("deep", "none", [FEW], of_slowest=False)]
    monkeypatch.setattr(observation, "differences_to_explain", lambda *_: asked)
    record = compared.load("latest")
    observer = _Silent()
    found = observation.with_observed_runs(record, analyse(record), compared, observer)  # type: ignore[arg-type]
    assert not [note for note in observer.notes if "no cause" in note]
    deep, shallow = found.behaviours
    assert (deep.scheduler, shallow.scheduler) == ("none", FEW)
    assert {one.source for one in found.behaviours} == {"recording"}
    assert 0 < shallow.mean_in_device <= 4 < deep.mean_in_device <= 32
    assert deep.parties[0].name == "reader"
    assert deep.parties[0].requests > 100
    assert compared.load("latest").behaviours == found.behaviours
    monkeypatch.undo()
    assert isinstance(causes_of(found, analyse(found)), list)


def test_jobs_that_do_the_same_are_not_guessed_at(compared: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    record = compared.load("latest")
    (workload,) = record.spec.workloads
    (job,) = workload.jobs
    twins = workload.model_copy(
        update={"jobs": [job, job.model_copy(update={"name": "other"})], "focus": ["reader"]}
    )
    record = record.model_copy(update={"spec": record.spec.model_copy(update={"workloads": [twins]})})
    asked = [Explained("deep", "none", [FEW], of_slowest=False)]
    monkeypatch.setattr(observation, "differences_to_explain", lambda *_: asked)
    observer = _Silent()
    found = observation.with_observed_runs(record, analyse(record), compared, observer)  # type: ignore[arg-type]
    assert found.behaviours == []
    assert "cannot tell its jobs apart" in observer.notes[0]
