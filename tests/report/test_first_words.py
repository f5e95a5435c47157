"""The order of an open verdict's report: what is known, what settles the rest, the model's answer, noise."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest
from report_cases import CASES, analysed

from blklab.analysis.verdict import analyse
from blklab.experiment.nearest_model import nearest_model
from blklab.records.experiment import ExperimentRecord
from blklab.report.documents.comparison import CompareDocument, compare_document
from blklab.report.html.comparison import render_html
from blklab.report.html.page import inert_json
from blklab.report.summary.model_answer import ModelAnswer, asks_model, contradicts, model_answer
from blklab.report.terminal import Terminal
from blklab.report.text.answer import answer_of
from blklab.report.text.comparison import MOST_CLAUSES_SHOWN, render
from blklab.report.text.conditions import MOST_LINES, conditions, quiet_sentence
from blklab.report.text.known import anything_settled, known_so_far
from blklab.testing.experiments import (
    QUIET,
    SchedulerBehaviour,
    make_experiment,
    make_spec,
    make_target,
    make_workload,
)

_reads = make_workload("random-read-4k-qd32", source="random-read-4k-qd32")


def _document(record: ExperimentRecord) -> CompareDocument:
    return compare_document(record, analyse(record))


def _printed(document: CompareDocument, *, model: ModelAnswer | None = None, width: int = 100) -> str:
    file = io.StringIO()
    render(document, Terminal(file=file, width=width), model=model, report_file="/r.html", verbose=True)
    return file.getvalue()


def _disturbed() -> ExperimentRecord:
    """No pair settled, and every kind of disturbance many times over."""
    stolen = QUIET.model_copy(update={"steal_fraction": 0.3})
    labels = ("none", "mq-deadline", "kyber", "bfq")
    return make_experiment(
        make_spec(list(labels), [_reads], blocks=6),
        behaviours={label: SchedulerBehaviour(1, 0.3, change=-0.5) for label in labels},
        over_time=True,
        drift=0.8,
        events={(block, _reads.name, label): stolen for block in (1, 2) for label in labels},
    )


def _model_of_its_own() -> ModelAnswer:
    """A settled answer of `sim:ssd-sata`, whose winner wins nowhere else in these tests."""
    spec = make_spec(["deadline", "cfq"], [_reads], blocks=8, target="sim:ssd-sata")
    target = make_target(spec, backend="sim").model_copy(
        update={"summary": "simulated ssd-sata: consumer SATA TLC SSD, 1 TB"}
    )
    return model_answer(make_experiment(spec, behaviours={"cfq": SchedulerBehaviour(0.5)}, target=target))


def test_an_undecided_report_says_first_who_is_beaten_and_by_how_much() -> None:
    document = _document(CASES["undecided"]())
    reads, log = known_so_far(document)
    assert reads.subject == "random-read-4k-qd32, IOPS"
    beaten, loss = reads.settled
    assert re.fullmatch(r"With mq-deadline, no other is more than \d+ % better \(95 %\)", loss)
    assert re.fullmatch(
        r"`none`, mq-deadline and kyber beat bfq: with `none`, IOPS is \d+ % \[\d+, \d+\] higher than "
        "with bfq",
        beaten,
    )
    assert (reads.still_open or "").startswith(
        "still open: `none`, mq-deadline and kyber (`none` leads, with IOPS "
    )
    assert [line.startswith("With mq-deadline, no other is more") for line in log.settled] == [True]
    printed = _printed(document)
    order = [
        "No reason to change yet: keep mq-deadline; at most",
        "Known so far",
        "beat bfq",
        "Still open",
        "would probably settle",
        "blklab compare --resume",
    ]
    order += ["Measured on", "(decides)", "All figures, charts and runs: /r.html"]
    places = [printed.index(words) for words in order]
    assert places == sorted(places)


def test_claims_of_what_is_known_are_those_of_the_comparisons() -> None:
    for case in CASES:
        document = compare_document(*analysed(case))
        if document.verdict.status != "undecided":
            continue
        settled = {pair.outcome for pair in document.comparisons} & {"better", "worse", "equal"}
        decides = {(one.workload, one.metric) for one in document.verdicts if one.decides}
        pairs = [pair for pair in document.comparisons if (pair.workload, pair.metric) in decides]
        losers = {
            pair.second if pair.outcome == "better" else pair.first
            for pair in pairs
            if pair.outcome in ("better", "worse")
        }
        said = " ".join(clause for entry in known_so_far(document) for clause in entry.settled)
        assert settled or not said
        for label in (str(choice["label"]) for choice in document.schedulers):
            assert (f"beat {label}:" in said or f"beats {label}:" in said) <= (label in losers)


def test_no_settled_pair_is_said_plainly() -> None:
    document = _document(_disturbed())
    assert not anything_settled(known_so_far(document))
    assert "No pair is settled after 6 repetitions." in _printed(document)


def test_equal_candidates_are_known_though_a_third_is_open() -> None:
    labels = ["one=none", "two=none", "bfq"]
    record = make_experiment(
        make_spec(labels, [_reads], blocks=6),
        behaviours={"bfq": SchedulerBehaviour(1.0, 0.2)},
        block_noise=0.001,
    )
    document = _document(record)
    assert document.verdict.status == "undecided"
    (known,) = known_so_far(document)
    assert known.settled == ["one and two are equal within 2 %"]


def test_a_dozen_beaten_schedulers_do_not_fill_the_screen() -> None:
    labels = ["none", "second=none", *(f"slow{number}=bfq" for number in range(9))]
    behaviours = {f"slow{number}": SchedulerBehaviour(0.5) for number in range(9)}
    behaviours |= {"none": SchedulerBehaviour(1, 0.1), "second": SchedulerBehaviour(1, 0.1)}
    document = _document(make_experiment(make_spec(labels, [_reads], blocks=6), behaviours=behaviours))
    assert document.verdict.status == "undecided"
    printed = _printed(document)
    assert len(re.findall(r" beats? slow\d", printed)) == MOST_CLAUSES_SHOWN
    assert "and 3 more" in printed


@pytest.mark.parametrize("width", [80, 100])
def test_disturbances_take_three_lines_and_the_report_has_all(width: int) -> None:
    record = _disturbed()
    document = _document(record)
    assert document.during_runs is not None
    assert len(document.during_runs.disturbances) >= 8
    lines = conditions(document)
    assert 1 < len(lines) <= MOST_LINES
    printed = _printed(document, width=width)
    tail = printed[printed.rindex("(decides)") :]
    assert tail.count("⚠ ") == len(lines)
    assert max(map(len, lines)) <= 98
    assert printed.rindex("⚠ ") > printed.rindex("? open")
    assert "All figures, charts and runs: /r.html" in printed
    html = render_html(record, _document(record))
    assert all(one.text in html for one in document.during_runs.disturbances)


def test_an_undisturbed_experiment_takes_one_line() -> None:
    record = make_experiment(make_spec(workloads=[_reads], blocks=6), over_time=True)
    document = _document(record)
    quiet = quiet_sentence(document)
    assert conditions(document) == []
    assert quiet is not None
    assert _printed(document, width=120).count(quiet) == 1


def test_the_models_answer_is_marked_and_apart() -> None:
    record = CASES["undecided"]()
    document = _document(record)
    model = _model_of_its_own()
    printed = _printed(document, model=model)
    block = printed[printed.index("A model's answer, not this disk's") : printed.index("Measured on")]
    where = "On a modelled disk (sim:ssd-sata, consumer SATA TLC SSD, 1 TB)"
    assert f"{where}: deadline is best" in " ".join(block.split())
    assert "deadline" not in printed.replace(block, "").replace("mq-deadline", "")
    assert printed.index("No reason") < printed.index("Known so far") < printed.index("A model's answer")
    html = render_html(record, document, model=model)
    aside = re.search(r'<aside class="model".*?</aside>', html, re.DOTALL)
    assert aside is not None
    assert "deadline is best" in aside[0]
    assert "deadline is best" not in html.replace(aside[0], "")
    # The page's data, the document for machines and the record are the disk's alone.
    assert inert_json(document) in html
    assert "sim:ssd-sata" not in inert_json(document)


def test_a_model_without_an_answer_does_not_pretend() -> None:
    answer = _model_of_its_own()
    spec = make_spec(["deadline", "cfq"], [_reads], blocks=1, target="sim:ssd-sata")
    still_open = model_answer(make_experiment(spec, target=make_target(spec, backend="sim")))
    said = " ".join(_printed(_document(CASES["undecided"]()), model=still_open).split())
    assert "Not known yet: 1 repetition is too few for an answer." in said
    other = replace(answer, undecided_nearest="sim:hdd-7200")
    said = " ".join(_printed(_document(CASES["undecided"]()), model=other).split())
    assert "sim:hdd-7200 has no answer either; on another modelled disk (sim:ssd-sata, " in said


@pytest.mark.parametrize("case", CASES)
def test_a_model_is_asked_only_where_the_disk_has_neither_answer_nor_lead(case: str) -> None:
    document = compare_document(*analysed(case))
    assert asks_model(document) == answer_of(document).headline.startswith("Not known yet")


def test_a_model_that_the_disk_contradicts_is_known() -> None:
    labels = ["deadline", "cfq", "bfq"]
    model = _model_of_its_own()
    loses, wins = (
        _document(
            make_experiment(
                make_spec(labels, [_reads], blocks=8), behaviours={label: SchedulerBehaviour(0.5)}
            )
        )
        for label in ("deadline", "cfq")
    )
    assert model.document.verdict.best == ["deadline"]
    assert contradicts(loses, model)
    assert not contradicts(wins, model)


@pytest.mark.parametrize(
    ("name", "rotational", "model"),
    [
        ("nvme0n1", False, "sim:nvme-tlc"),
        ("sda", True, "sim:hdd-7200"),
        ("sda", False, "sim:ssd-sata"),
        ("vda", True, "sim:ssd-sata"),
        ("loop0", True, "sim:ssd-sata"),
        ("sda", None, "sim:ssd-sata"),
    ],
)
def test_the_nearest_model(name: str, rotational: bool | None, model: str) -> None:
    assert nearest_model(name, rotational=rotational) == model
