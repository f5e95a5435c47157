"""Parts of the short report: slots lost to slow switches, notes, and a model's answer."""

from __future__ import annotations

import io
import re

import pytest
from report_cases import CASES, analysed
from switchback_cases import SWITCHBACKS

from blklab.analysis.regret import Regret
from blklab.analysis.verdict import analyse
from blklab.quantities.notes import Note, split, stored
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import SLOW_SWITCH
from blklab.report.documents.comparison import CompareDocument, compare_document
from blklab.report.documents.job_shares import JobRatioPart
from blklab.report.html.comparison import render_html
from blklab.report.sentences.losses import loss_text
from blklab.report.summary.failures import failures_of, lost_slots_sentence
from blklab.report.summary.job_shares import ratio_text
from blklab.report.terminal import Terminal
from blklab.report.text.advice import next_steps
from blklab.report.text.answer import answer_of
from blklab.report.text.comparison import render
from blklab.report.text.printer import Printer
from blklab.report.text.short_verdict import short_verdict
from blklab.testing.experiments import (
    SchedulerBehaviour,
    WorkloadBehaviour,
    make_experiment,
    make_spec,
    make_workload,
)


def _printed(document: CompareDocument, *, verbose: bool = False) -> str:
    file = io.StringIO()
    render(document, Terminal(file=file, width=80), verbose=verbose)
    return file.getvalue()


def test_slots_lost_to_slow_switches_are_counted_and_not_called_failed() -> None:
    record = SWITCHBACKS["undecided"]()
    lost = [
        sample.model_copy(update={"status": "failed", "error": SLOW_SWITCH}) if number % 8 == 0 else sample
        for number, sample in enumerate(record.samples)
    ]
    record = record.model_copy(update={"samples": lost})
    document = compare_document(record, analyse(record))
    number = len(document.failed_runs)
    assert number > 10
    sentence = lost_slots_sentence(document)
    assert sentence is not None and sentence.startswith(f"{number} of ")
    assert sentence.endswith("slots left out: switching took too long (busy machine).")
    assert failures_of(document) == []
    for verbose in (False, True):
        text = _printed(document, verbose=verbose)
        assert "failed" not in text
        assert "left out: switching took too long" in " ".join(text.split())


def test_undisturbed_slots_have_no_such_line() -> None:
    assert lost_slots_sentence(compare_document(*analysed("decided"))) is None


def test_figures_of_many_magnitudes_have_units_of_their_own() -> None:
    spec = make_spec(["none", "bfq"], blocks=4)
    record = make_experiment(spec, behaviours={"bfq": SchedulerBehaviour(1e-4)})
    text = _printed(compare_document(record, analyse(record)))
    bars = [line for line in text.splitlines() if "none" in line]
    assert any("kIO/s" in line for line in bars)
    assert "(more is better; 95 % intervals)" in text


def test_notes_are_no_warnings_and_are_printed_once() -> None:
    remarks = stored([Note("computing takes no time"), "the disk is degraded"])
    assert split(remarks) == (["the disk is degraded"], ["computing takes no time"])
    record = CASES["equal"]().model_copy(update={"warnings": remarks})
    document = compare_document(record, analyse(record))
    assert (document.warnings, document.notes) == (["the disk is degraded"], ["computing takes no time"])
    assert "computing takes no time" not in _printed(document)
    assert _printed(document, verbose=True).count("computing takes no time") == 1
    assert "WARNING: the disk is degraded" in _printed(document)


def test_jobs_stand_beneath_the_bars_with_their_ratio() -> None:
    document = compare_document(record := CASES["depends"](), analyse(record))
    text = _printed(document)
    assert "reader-beside-writers by job" in text
    (heading,) = [line for line in text.splitlines() if " by job" in line]
    assert heading.endswith("reader : background")
    rows = text.splitlines()[text.splitlines().index(heading) + 1 :][:2]
    assert [row.split()[0] for row in rows] == ["none", "bfq"]
    assert all(row.endswith("3 : 1") for row in rows)


def test_rates_give_way_to_ratios_where_a_terminal_is_narrow() -> None:
    document = compare_document(record := CASES["depends"](), analyse(record))
    wide, narrow = io.StringIO(), io.StringIO()
    render(document, Terminal(file=wide, width=120))
    render(document, Terminal(file=narrow, width=60))
    assert "(25 %)" in wide.getvalue()
    assert "(25 %)" not in narrow.getvalue()
    assert "reader : background" in narrow.getvalue()


def test_a_goal_says_which_part_decided() -> None:
    document = compare_document(record := CASES["purpose"](), analyse(record))
    assert "decides between kyber and `none`: -37.9 %" in " ".join(_printed(document).split())


def test_after_two_repetitions_nothing_is_estimated_and_the_way_on_is_named() -> None:
    record = make_experiment(make_spec(["none", "bfq"], blocks=2))
    text = " ".join(_printed(compare_document(record, analyse(record))).split())
    assert "Not known yet: 2 repetitions are too few for an answer." in text
    assert "not worth it" not in text
    assert f"blklab compare --resume {record.run_id} --blocks 18" in text


def test_a_report_counts_repetitions_whatever_their_design() -> None:
    for record in (CASES["decided"](), SWITCHBACKS["undecided"]()):
        (measured,) = [
            line
            for line in _printed(compare_document(record, analyse(record))).split("\n\n")
            if "Measured on" in line
        ]
        said = " ".join(measured.split())
        assert re.search(r"\d+ repetitions", said)
        assert not re.search(r"\d+ (block|round)s?\b", said)


@pytest.mark.parametrize(
    ("ratio", "low", "high", "text"),
    [
        (7.9, 7.7, 8.1, "7.9 : 1 [7.7, 8.1]"),
        (0.0125, 0.01, 0.02, "1 : 80 [50, 100]"),
        (0.5, None, None, "1 : 2"),
        (3.0, 3.0, 3.0, "3 : 1"),
    ],
)
def test_the_larger_side_of_a_ratio_has_the_number(
    ratio: float, low: float | None, high: float | None, text: str
) -> None:
    assert ratio_text(JobRatioPart(first="a", second="b", ratio=ratio, low=low, high=high)) == text


@pytest.mark.parametrize(
    ("case", "words"),
    [("decided", "best: "), ("equal", "equal: "), ("undecided", "keep "), ("empty", "not known yet")],
)
def test_a_list_of_runs_gives_the_answer_and_not_only_the_verdict(case: str, words: str) -> None:
    document = compare_document(record := CASES[case](), analyse(record))
    assert short_verdict(document).startswith(words)


def test_a_paragraph_is_cut_between_words() -> None:
    printer = Printer(Terminal(file=io.StringIO(), width=30))
    lines = [line.plain for line in printer.wrapped("several words of a sentence " * 5, most=2)]
    assert len(lines) == 2
    assert lines[-1].endswith(" \N{HORIZONTAL ELLIPSIS}")
    assert len(lines[-1]) <= 30
    assert set(lines[-1].split()[:-1]) <= {"several", "words", "of", "a", "sentence"}


def test_nothing_to_lose_is_not_0_percent() -> None:
    assert loss_text(Regret("none", 0.0, None, None), 0.95) == "no other is better (95 %)"
    assert loss_text(Regret("none", 0.012, None, None), 0.95) == "no other is more than 1.2 % better (95 %)"


def _withheld(*, copy: bool, noise: float = 0.002) -> tuple[ExperimentRecord, CompareDocument]:
    """Something other than the scheduler was at work: a control differs, or an unchanged copy."""
    labels: tuple[str, ...]
    if copy:
        labels, workloads = ("kyber", "kyber@copy", "kyber@mine"), [make_workload("reads")]
    else:
        labels, workloads = ("none", "bfq"), [make_workload("reads"), make_workload("cached", control=True)]
    quiet = {label: SchedulerBehaviour(noise=0.002) for label in labels}
    record = make_experiment(
        make_spec(labels, workloads, blocks=6),
        behaviours={
            label: SchedulerBehaviour(speed=1 + 0.2 * number, noise=noise)
            for number, label in enumerate(labels)
        },
        workloads={"cached": WorkloadBehaviour(schedulers=quiet | {"bfq": SchedulerBehaviour(1.4, 0.002)})},
    )
    return record, compare_document(record, analyse(record))


def test_a_copy_that_differs_is_named_as_the_reason() -> None:
    said = " ".join(_printed(_withheld(copy=True)[1]).split())
    assert "No recommendation: the unchanged copy kyber@copy differs from its original, so" in said


def test_several_copies_that_differ_are_named_together() -> None:
    """As in the document's own sentence."""
    labels = ("kyber", "bfq", "kyber@copy", "bfq@copy")
    record = make_experiment(
        make_spec(labels, [make_workload("reads")], blocks=6),
        behaviours={
            label: SchedulerBehaviour(1 + 0.2 * number, 0.002) for number, label in enumerate(labels)
        },
    )
    document = compare_document(record, analyse(record))
    differing = "the unchanged copies kyber@copy and bfq@copy differ from their originals"
    assert answer_of(document).reason.startswith(f"{differing}, so ")
    assert document.verdict.text.startswith(f"withheld because {differing}; ")


@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.parametrize(("copy", "noise"), [(False, 0.002), (True, 0.002), (False, 0.4)])
def test_a_withheld_answer_calls_nothing_best_and_explains_nothing(
    copy: bool, noise: float, verbose: bool
) -> None:
    record, document = _withheld(copy=copy, noise=noise)
    assert document.verdict.recommendation.action == short_verdict(document) == "withheld"
    said = _printed(document, verbose=verbose)
    assert "No recommendation" in said
    assert not any(word in said for word in ("★", "beaten", "Why"))
    assert "★" not in render_html(record, document).partition("<header>")[2].partition("<footer>")[0]


def test_the_title_of_a_chart_is_shortened_before_it_is_cut() -> None:
    record = CASES["purpose"]()
    document = compare_document(record, analyse(record))
    assert "(more is better; 95 %)\n" in _printed(document)


def test_workloads_without_room_are_counted_and_no_sentence_is_cut() -> None:
    workloads = [make_workload(f"a-workload-with-a-long-name-{number}") for number in range(12)]
    spec = make_spec(("none", "kyber", "bfq"), workloads, blocks=6)
    record = make_experiment(
        spec, behaviours={"kyber": SchedulerBehaviour(1.3), "bfq": SchedulerBehaviour(0.5)}
    )
    printed = _printed(compare_document(record, analyse(record)))
    assert len(printed.splitlines()) <= 24
    shown, found, _ = printed.partition("\n… and ")
    sentences = re.split(r"\na-workload-with-a-long-name-\d+: ", shown)[1:]
    assert found and f"… and {12 - len(sentences)} more workloads (-v)" in printed
    assert all(sentence.endswith(("the next best", "next\nbest")) for sentence in sentences)


def test_an_open_workload_says_what_is_lost_with_the_recommended_scheduler() -> None:
    labels = ["none", "mq-deadline", "kyber", "bfq"]
    workloads = [make_workload(f"load-{number}") for number in range(4)]
    spec = make_spec(labels, workloads, blocks=8).model_copy(update={"good_enough": 0.05})
    record = make_experiment(
        spec, behaviours={label: SchedulerBehaviour(1.0, noise=0.02) for label in labels}
    )
    document = compare_document(record, analyse(record))
    chosen = document.verdict.recommendation
    assert chosen.action == "keep"
    told = " ".join(_printed(document).split())
    for name in ("load-0", "load-3"):
        line = told.partition(f"{name}: ")[2].partition("load-")[0]
        assert line.startswith("undecided between ")
        assert f"is lost with {chosen.scheduler}" in line


def test_a_load_with_too_few_repetitions_is_named_and_the_next_step_is_more_of_it() -> None:
    document = _document_of(SWITCHBACKS["mixed"]())
    blocks = next(part for part in document.designs if part.slot_ns is None)
    few = blocks.model_copy(update={"rounds": 2})
    verdict = document.verdict.model_copy(
        update={
            "status": "undecided",
            "candidates": list(document.verdict.candidates or ["none", "bfq"]),
            "recommendation": document.verdict.recommendation.model_copy(
                update={"action": "unknown", "reason": "too_few", "scheduler": None}
            ),
        }
    )
    short = document.model_copy(
        update={
            "verdict": verdict,
            "designs": [few if part is blocks else part for part in document.designs],
        }
    )
    assert answer_of(short).reason == f"2 repetitions of {blocks.workload} are too few for an answer"
    (step,) = [step for step in next_steps(short) if step.command is not None]
    assert f"repetitions of {blocks.workload}; to go on:" in step.text
    assert step.command is not None and " --budget " in step.command


def _document_of(record: ExperimentRecord) -> CompareDocument:
    return compare_document(record, analyse(record))
