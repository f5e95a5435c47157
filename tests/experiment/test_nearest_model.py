"""The answer of the nearest modelled disk: the disk's own question, asked of the simulator."""

from __future__ import annotations

from pathlib import Path

import pytest

from blklab.experiment import nearest_model
from blklab.experiment.nearest_model import MODEL_BLOCKS, answer_of_nearest_model
from blklab.records.experiment import ExperimentRecord
from blklab.report.summary.model_answer import ModelAnswer, model_answer
from blklab.spec.workloads import load_workload
from blklab.testing.experiments import make_experiment, make_spec, make_target

JOB = (
    "; purpose: Random reads.\n[reader]\nrw=randread\nbs=4k\ndirect=1\nioengine=libaio\niodepth=8\nsize=64m\n"
    "time_based\nruntime=100ms\n"
)


def _unheard(line: str) -> None:
    del line


def _record(
    folder: Path, labels: list[str], *, backend: str = "host", rotational: bool = False
) -> ExperimentRecord:
    job = folder / "reads.fio"
    job.write_text(JOB)
    spec = make_spec(labels, [load_workload(str(job))], blocks=3)
    spec = spec.model_copy(update={"runtime_ns": 100_000_000})
    target = make_target(spec, backend=backend)
    disk = target.disks[0].model_copy(update={"name": "sda", "rotational": rotational})
    return make_experiment(spec, target=target.model_copy(update={"disks": [disk]}))


def test_it_asks_the_same_question_and_keeps_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLKLAB_STORE", str(tmp_path / "runs.sqlite"))
    record = _record(tmp_path, ["none", "bfq:slice_idle=0"])
    before = record.model_dump_json()
    answer = answer_of_nearest_model(record, _unheard)
    assert answer is not None
    assert answer.document.target == "sim:ssd-sata"
    assert [choice["label"] for choice in answer.document.schedulers] == ["none", "bfq:slice_idle=0"]
    assert [workload["name"] for workload in answer.document.workloads] == ["reads"]
    assert answer.document.stopping.budget_blocks == MODEL_BLOCKS
    assert answer.document.margin == record.spec.margin
    assert f"--budget {MODEL_BLOCKS}blocks" in answer.command
    assert answer.command.endswith(" sim:ssd-sata")
    assert record.model_dump_json() == before
    assert not (tmp_path / "runs.sqlite").exists()


def test_no_answer_beside_a_modelled_disk_nor_where_the_simulator_lacks_something(tmp_path: Path) -> None:
    assert answer_of_nearest_model(_record(tmp_path, ["none", "bfq"], backend="sim"), _unheard) is None
    record = _record(tmp_path, ["none", "bfq"])
    own = record.spec.schedulers[0].model_copy(update={"name": "of-my-own", "label": "of-my-own"})
    spec = record.spec.with_schedulers([own, record.spec.schedulers[1]])
    assert answer_of_nearest_model(record.model_copy(update={"spec": spec}), _unheard) is None


def test_no_model_is_asked_about_a_module(tmp_path: Path) -> None:
    record = _record(tmp_path, ["kyber", "kyber@mine"])
    said: list[str] = []
    assert answer_of_nearest_model(record, said.append) is None
    assert said == []


@pytest.mark.parametrize(
    ("limit", "value", "reason"),
    [
        ("MODEL_TIME_NS", -1, "it takes too long on this machine"),
        ("MODEL_EVENTS", 20_000, "it takes more than 20,000 simulated events"),
        ("MODEL_EVENTS_OF_A_RUN", 1000, "a run of it cannot be finished"),
    ],
)
def test_an_answer_that_takes_too_long_is_dropped_and_that_is_said(
    limit: str, value: int, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nearest_model, limit, value)
    told: list[str] = []
    assert answer_of_nearest_model(_record(tmp_path, ["none", "bfq"]), told.append) is None
    assert told[0] == "asking sim:ssd-sata, a model of such a disk, the same question"
    assert told[1].startswith(f"no answer from sim:ssd-sata: {reason}")


def test_a_job_without_a_size_does_not_read_a_whole_modelled_disk(tmp_path: Path) -> None:
    """On a real disk its test file has a size."""
    job = tmp_path / "endless.fio"
    job.write_text("[a]\n")
    spec = make_spec(["none", "bfq"], [load_workload(str(job))], blocks=1)
    told: list[str] = []
    assert answer_of_nearest_model(make_experiment(spec, target=make_target(spec)), told.append) is None
    assert "job a of endless has neither a size nor a runtime" in told[1]


def test_another_model_answers_where_the_nearest_is_undecided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    def undecided_on_rotating_disks(record: ExperimentRecord) -> ModelAnswer:
        answer = model_answer(record)
        if record.spec.target != "sim:hdd-7200":
            return answer
        verdict = answer.document.verdict.model_copy(update={"status": "undecided", "best": []})
        document = answer.document.model_copy(update={"verdict": verdict})
        return ModelAnswer(document, answer.command)

    monkeypatch.setattr(nearest_model, "model_answer", undecided_on_rotating_disks)
    answer = answer_of_nearest_model(_record(tmp_path, ["none", "noop"], rotational=True), _unheard)
    assert answer is not None
    assert answer.document.target == "sim:ssd-sata"
    assert answer.undecided_nearest == "sim:hdd-7200"


def test_a_drive_of_the_atlas_is_asked_by_its_own_name(tmp_path: Path) -> None:
    record = _record(tmp_path, ["none", "bfq"])
    disk = record.target.disks[0].model_copy(update={"name": "nvme0n1", "model": "Samsung SSD 970 PRO 512GB"})
    record = record.model_copy(update={"target": record.target.model_copy(update={"disks": [disk]})})
    said: list[str] = []
    answer_of_nearest_model(record, said.append)
    assert said[0].startswith("asking sim:Samsung SSD 970 PRO 512GB, a model of such a disk")
    assert nearest_model.nearest_model("nvme0n1", rotational=False, drive="of nobody") == "sim:nvme-tlc"
