"""The recommendation in words, for disks, models and kernels."""

from __future__ import annotations

import re

import pytest
from report_cases import CASES, analysed

from blklab.analysis.verdict import analyse
from blklab.guests.kernels.names import DEFAULT_NAME
from blklab.quantities.formatting import metric_title
from blklab.records.experiment import ExperimentRecord
from blklab.report.documents.comparison import compare_document
from blklab.report.summary.kernels import UNPATCHED
from blklab.report.summary.standing import deciding_verdict, is_withheld, judged_workloads
from blklab.report.text.advice import next_steps
from blklab.report.text.answer import answer_of, explanation
from blklab.spec.schedulers import parse_scheduler_choice
from blklab.testing.experiments import SchedulerBehaviour, make_experiment, make_spec, make_target


def _sentence(record: ExperimentRecord) -> str:
    return answer_of(compare_document(record, analyse(record))).sentence


def _kernels(speed: float, noise: float, *, names: tuple[str, str] = ("stock", "mine")) -> ExperimentRecord:
    labels = [f"mq-deadline@{name}" for name in names]
    spec = make_spec(["none", "bfq"], blocks=8, target="uml:hdd-7200,seed=1")
    spec = spec.with_schedulers([parse_scheduler_choice(label) for label in labels])
    behaviours = {labels[0]: SchedulerBehaviour(1.0, noise), labels[1]: SchedulerBehaviour(speed, noise)}
    return make_experiment(
        spec, behaviours=behaviours, target=make_target(spec, backend="uml"), block_noise=0.001
    )


def test_a_patch_has_words_of_its_own() -> None:
    assert UNPATCHED == DEFAULT_NAME
    assert _sentence(_kernels(1.0, 0.001)) == "The patch makes no difference here (within 2 %)."
    worse = _sentence(_kernels(0.8, 0.01))
    assert re.fullmatch(
        r"The patch is worse here: IOPS is [\d.]+ % \[[\d., ]+\] lower than with mq-deadline@stock\.", worse
    )
    assert _sentence(_kernels(1.3, 0.01)).startswith("The patch is better here: IOPS is ")
    assert _sentence(_kernels(1.3, 0.01, names=("mine", "stock"))).startswith("The patch is worse here: ")
    assert _sentence(_kernels(1.0, 0.001, names=("one", "two"))).startswith("The kernel two makes no ")
    assert "Not known yet whether the patch makes a difference here: " in _sentence(_kernels(1.0, 0.5))


def test_the_next_step_for_a_patch_is_to_judge_it() -> None:
    record = _kernels(1.0, 0.001)
    (step,) = next_steps(compare_document(record, analyse(record)))
    assert step.command == "blklab kernel judge --kernel stock,mine --disk hdd-7200 --scheduler mq-deadline"


@pytest.mark.parametrize("label", ["none", "none@mine", "none:nr_requests=64"])
def test_none_is_set_off_as_a_name(label: str) -> None:
    spec = make_spec(["mq-deadline", "bfq"], blocks=8)
    spec = spec.with_schedulers([parse_scheduler_choice("mq-deadline"), parse_scheduler_choice(label)])
    record = make_experiment(spec, behaviours={"mq-deadline": SchedulerBehaviour(0.5)})
    assert f"`{label}`" in _sentence(record)


@pytest.mark.parametrize("case", CASES)
def test_no_sentence_has_none_as_a_bare_word(case: str) -> None:
    record, analysis = analysed(case)
    document = compare_document(record, analysis)
    said = [answer_of(document).sentence, *(step.text for step in next_steps(document))]
    for text in said:
        assert not re.search(r"(?<![`\w@:=<>-])none(?![`\w=<-])", text), text
        assert text[0].isupper() or text.startswith(tuple(map(str, analysis.verdict.best)))


def test_a_model_gives_a_finding_and_no_advice() -> None:
    spec = make_spec(["mq-deadline", "bfq"], blocks=8, target="sim:hdd-7200")
    record = make_experiment(
        spec, behaviours={"bfq": SchedulerBehaviour(1.2)}, target=make_target(spec, backend="sim")
    )
    sentence = _sentence(record)
    assert sentence.startswith("bfq is best: IOPS is ")
    assert "in use now" not in sentence


def test_a_disk_is_told_what_is_in_use() -> None:
    spec = make_spec(["mq-deadline", "bfq", "kyber"], blocks=8)
    changed = _sentence(make_experiment(spec, behaviours={"bfq": SchedulerBehaviour(1.3)}))
    assert re.fullmatch(
        r"Use bfq: IOPS is [\d.]+ % \[[\d., ]+\] higher than with mq-deadline, in use now\.", changed
    )
    kept = _sentence(make_experiment(spec, behaviours={"mq-deadline": SchedulerBehaviour(1.3)}))
    assert kept.startswith("No reason to change: keep mq-deadline; IOPS is ")
    assert kept.endswith(", the next best.")


@pytest.mark.parametrize("case", CASES)
def test_a_reason_that_is_a_figure_stands_for_the_question(case: str) -> None:
    """``Under many-readers, IOPS is …``; other reasons follow the metric, which they do not name."""
    document = compare_document(*analysed(case))
    answer, judged = answer_of(document), judged_workloads(document)
    verdict = deciding_verdict(document, judged[0])
    if len(judged) > 1 or document.goal is not None or verdict is None:
        return
    title = metric_title(verdict.metric)
    assert answer.is_figure is answer.reason.startswith(f"{title} is ")
    if is_withheld(document):
        assert explanation(document) == f"{answer.reason[0].upper()}{answer.reason[1:]}.", "no load's answer"
        return
    joint = ", " if answer.is_figure else f", by {title}: " if answer.reason else f", by {title}"
    assert explanation(document) == f"Under {judged[0]}{joint}{answer.reason}."
