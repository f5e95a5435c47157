"""`blklab apply RUN` refuses exactly what the answer of the run does not recommend."""

from __future__ import annotations

from pathlib import Path

import pytest

from blklab.analysis.verdict import analyse
from blklab.cli.apply import resolve_run
from blklab.errors import BlklabError, RefusedError
from blklab.records.experiment import ExperimentRecord
from blklab.records.store import Store
from blklab.report.documents.comparison import compare_document
from blklab.report.text.answer import answer_of
from blklab.testing.experiments import SchedulerBehaviour, make_experiment, make_spec

LABELS = ["mq-deadline", "kyber", "none"]


def _stored(record: ExperimentRecord, folder: Path) -> str:
    url = f"sqlite:///{folder}/runs.sqlite"
    with Store.opened(url) as store:
        store.begin(record)
        store.add_samples(record.run_id, record.samples)
    return url


def _record(noise: float, *, best: str = "none", speed: float = 1.0) -> ExperimentRecord:
    behaviours = {label: SchedulerBehaviour(speed if label == best else 1.0, noise) for label in LABELS}
    return make_experiment(make_spec(LABELS, blocks=6, target="/nowhere/at/all"), behaviours=behaviours)


def test_an_answer_without_a_recommendation_is_refused_in_its_own_words(tmp_path: Path) -> None:
    record = _record(0.3)
    answer = answer_of(compare_document(record, analyse(record)))
    assert not answer.headline.startswith("Use")
    with pytest.raises(RefusedError) as refused:
        resolve_run(record.run_id, _stored(record, tmp_path), force=False)
    assert answer.headline in refused.value.message
    assert "recommends no scheduler" in refused.value.message


@pytest.mark.parametrize("best", LABELS)
def test_a_recommendation_is_refused_only_for_its_disk(tmp_path: Path, best: str) -> None:
    record = _record(0.01, best=best, speed=1.5)
    answer = answer_of(compare_document(record, analyse(record)))
    assert best in answer.headline
    with pytest.raises(BlklabError) as refused:
        resolve_run(record.run_id, _stored(record, tmp_path), force=False)
    assert "recommends no scheduler" not in refused.value.message
