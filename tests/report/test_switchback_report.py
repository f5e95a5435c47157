"""Reports of switchbacks: rounds and slots in words, charts of bounded size, no table row for each slot."""

from __future__ import annotations

import functools
import io
import os
import re
from pathlib import Path

import numpy as np
import pytest
from switchback_cases import LOG, READS, SLOTS, SPEEDS, SWITCHBACKS, WINDOW_NS, switchback

from blklab.analysis.designs import design_of
from blklab.analysis.values import experiment_values
from blklab.analysis.verdict import analyse
from blklab.quantities.sample_units import BLOCKS, SampleUnit, rough_budget, rough_duration
from blklab.records.experiment import ExperimentRecord
from blklab.report.documents.comparison import CompareDocument, compare_document
from blklab.report.html.comparison import render_html
from blklab.report.summary.designs import design_sentence, extent, unit_of
from blklab.report.summary.disturbed import disturbed_rows, marked_text
from blklab.report.summary.failures import failures_of
from blklab.report.summary.narrowing import MOST_LOOKS, looks
from blklab.report.summary.regret import loss_rows
from blklab.report.summary.slot_rates import MOST_ALIGNED_WINDOWS, aligned_slots, slot_rates
from blklab.report.terminal import Terminal
from blklab.report.text.answer import answer_of
from blklab.report.text.comparison import render

GOLDEN = Path(__file__).parent / "golden"
REFRESH = os.environ.get("BLKLAB_REFRESH_GOLDEN") == "1"
MS = 1_000_000


@functools.cache
def _made(case: str) -> tuple[ExperimentRecord, CompareDocument]:
    record = SWITCHBACKS[case]()
    return record, compare_document(record, analyse(record))


@functools.cache
def _page(case: str) -> str:
    return render_html(*_made(case))


def _printed(document: CompareDocument, width: int = 80) -> str:
    file = io.StringIO()
    render(document, Terminal(file=file, width=width), verbose=True)
    return file.getvalue()


def _words(html: str) -> str:
    """The text of a page without its data and scripts."""
    shown = html[html.index("<body") : html.index('id="blklab-data"')]
    return " ".join(re.sub(r"<[^>]+>", " ", shown).split())


@pytest.mark.parametrize("case", SWITCHBACKS)
def test_golden(case: str) -> None:
    path = GOLDEN / f"switchback-{case}.txt"
    text = _printed(_made(case)[1])
    if REFRESH:
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), "refresh with BLKLAB_REFRESH_GOLDEN=1 if it is meant"
    assert all(len(line) <= 80 or line.startswith("    blklab ") for line in text.splitlines())


def test_the_design_and_its_reason_are_one_line_per_workload() -> None:
    text = " ".join(_printed(_made("mixed")[1]).split())
    assert "Switchback, 96 slots of 250 ms (the first 50.0 ms of each cut off) in 24 rounds" in text
    assert "Runs in blocks: fdatasync after each write empties the queue at every switch." in text
    assert "6 blocks and 24 rounds" in text
    page = _words(_page("mixed"))
    assert f"Switchback : {SLOTS.reason}." in page
    assert "Runs in blocks : fdatasync after each write empties the queue at every switch." in page


@pytest.mark.parametrize("case", ["undecided", "troubled", "short", "lengthened"])
def test_nothing_is_called_a_block_or_a_run_where_all_is_switched(case: str) -> None:
    record, document = _made(case)
    said = " ".join([*_printed(document).split(), _words(_page(case)).replace(record.run_id, "")])
    # The load runs, settings are read back "during the runs"; nothing else may.
    said = re.sub(r"load runs on|uring the runs|, run \S+|runtime", "", said)
    assert re.findall(r".{30}\b(?:blocks?|runs)\b.{20}", said) == []


def test_no_row_and_no_chart_for_each_slot() -> None:
    page = _page("undecided")
    assert page.count("<tr>") < 60
    assert page.count('data-chart="sequence"') == 0
    for kind in ("narrowing", "load", "settling"):
        assert page.count(f'data-chart="{kind}"') == 1
    assert _page("mixed").count('data-chart="sequence"') == 1


def test_a_long_switchback_stays_small() -> None:
    short, long = (switchback(rounds=[8] * stretches) for stretches in (5, 40))
    pages = [render_html(one, compare_document(one, analyse(one))) for one in (short, long)]
    assert len(long.samples) == 8 * len(short.samples)
    assert len(pages[1]) < 1.5 * len(pages[0]) + 50_000
    assert len(pages[1]) < 600_000


def test_the_last_look_is_the_comparison() -> None:
    record, document = _made("undecided")
    series = experiment_values(record).series[READS.name, "iops"]
    pair = next(one for one in document.comparisons if (one.metric, one.first) == ("iops", "none"))
    design = design_of(record.spec).of(READS.name)
    found = looks(series["none"], series[pair.second], design)
    assert len(found) == MOST_LOOKS
    assert found[-1].rounds == 40
    assert (found[-1].ratio, found[-1].low, found[-1].high) == (pair.ratio, pair.ci_low, pair.ci_high)
    assert [look.rounds for look in found] == sorted({look.rounds for look in found})
    widths = [look.high - look.low for look in found if look.high is not None and look.low is not None]
    assert widths[-1] < widths[0]


def test_no_look_without_a_common_round() -> None:
    design = design_of(_made("undecided")[0].spec).of(READS.name)
    assert looks({}, {}, design) == []
    assert looks({0: 1.0}, {1: 1.0}, design) == []
    only = looks({3: 2.0}, {3: 1.0}, design)
    assert [(look.rounds, look.low) for look in only] == [(4, None)]


def test_slots_are_aligned_at_their_switch() -> None:
    slots = slot_rates(_made("undecided")[0], READS.name)
    assert len(slots) == 160
    quick, slow = (aligned_slots(slots, name) for name in ("none", "bfq"))
    assert quick is not None
    assert slow is not None
    assert quick.slots == slow.slots == 40
    assert quick.times_ns[0] == WINDOW_NS / 2
    assert quick.median[0] == 0
    assert quick.median[3] == pytest.approx(1, abs=0.05)
    assert slow.median[3] == pytest.approx(0.7, abs=0.05)
    assert np.all(quick.low <= quick.median)
    assert np.all(quick.median <= quick.high)


def test_many_windows_are_merged_and_a_short_last_one_is_not_slow() -> None:
    record = switchback(rounds=(2,))
    samples = []
    for sample in record.samples:
        assert sample.slot is not None
        # 249.5 windows of 1 ms at an even pace.
        slot = sample.slot.model_copy(
            update={
                "window_ns": MS,
                "end_ns": sample.slot.start_ns + 249_500_000,
                "kept_to_ns": sample.slot.start_ns + 249_500_000,
                "ios": [10.0] * 249 + [5.0],
            }
        )
        samples.append(sample.model_copy(update={"slot": slot}))
    slots = slot_rates(record.model_copy(update={"samples": samples}), READS.name)
    assert slots[0].rates == pytest.approx(np.full(250, 10_000))
    found = aligned_slots(slots, "none")
    assert found is not None
    assert len(found.median) <= MOST_ALIGNED_WINDOWS
    assert found.median == pytest.approx(np.ones(len(found.median)))


def test_a_failed_stretch_is_one_failure() -> None:
    _, document = _made("troubled")
    (failure,) = failures_of(document)
    assert failure.where == f"rounds 9 to 16, {READS.name} (32 slots)"
    assert _printed(document).count("failed:") == 1
    assert "32 of 160 slots failed; in their rounds only the other slots count" in document.warnings


def test_a_disturbed_stretch_is_one_row() -> None:
    _, document = _made("troubled")
    (row,) = disturbed_rows(document)
    assert (row.span, row.scheduler) == ("25 to 32", "32 slots")
    assert marked_text(document) == "8 rounds"
    machine = document.during_runs
    assert machine is not None
    assert len(machine.runs) == 4  # a stretch's slots share what was seen of the machine


def test_slots_that_turned_out_too_short_do_not_count_and_are_mentioned() -> None:
    _, document = _made("lengthened")
    assert extent(document) == "24 rounds"
    assert document.designs[0].abandoned == 64
    assert "64 earlier slots not counted" in " ".join(_printed(document).split())
    checked = document.designs[0].model_copy(update={"long_slots": 4})
    assert "of load, checked by 4 long slots (64 earlier slots" in design_sentence(checked)
    assert "64 earlier slots of another length" in _words(_page("lengthened"))


def test_what_staying_costs_comes_first() -> None:
    _, document = _made("mixed")
    answer = answer_of(document)
    assert answer.headline == "No reason to change yet: keep mq-deadline"
    assert re.fullmatch(r"at most [\d.]+ % is lost \(95 % sure\)", answer.reason)
    text = _printed(document)
    assert text.lstrip().startswith(f"{answer.sentence}\n")
    places = [
        text.index(words)
        for words in ("No reason", "Known so far", "beat bfq", "At most", "over 10 times", "of load")
    ]
    assert places == sorted(places)
    page = _words(_page("mixed"))
    places = [page.index(words) for words in ("No reason", "Known so far", "beat bfq", "over 10 times")]
    assert places == sorted(places)
    assert loss_rows(document)[0].scheduler == "mq-deadline"


def test_without_a_scheduler_in_force_nothing_is_kept() -> None:
    record, _ = _made("undecided")
    target = record.target.model_copy(update={"default_scheduler": None})
    record = record.model_copy(update={"target": target})
    advised = compare_document(record, analyse(record)).verdict.recommendation
    assert (advised.action, advised.in_force) in (("choose", None), ("unknown", None))


def test_good_enough_is_a_reason_to_stay() -> None:
    record, _ = _made("undecided")
    spec = record.spec.model_copy(update={"good_enough": 0.08})
    record = record.model_copy(update={"spec": spec})
    text = " ".join(_printed(compare_document(record, analyse(record))).split())
    assert re.match(r"No reason to change: keep mq-deadline; at most [\d.]+ % is lost \(95 % sure\)\.", text)
    assert "Rounds were added until mq-deadline was known to be good enough" in text
    assert "Nothing needs to be done." in text
    assert "would probably settle" not in text


def test_nothing_is_promised_before_anything_is_known() -> None:
    assert answer_of(_made("short")[1]).headline == "Not known yet"
    assert "too few repetitions for intervals" in " ".join(_printed(_made("short")[1]).split())


def test_units() -> None:
    document = _made("mixed")[1]
    assert unit_of(document, LOG.name) == BLOCKS
    rounds = unit_of(document, READS.name)
    assert rounds.count(1) == "1 round"
    assert rounds.more(30, len(SPEEDS)) == "30 more repetitions (30 s of load)"
    assert BLOCKS.more(1, 4) == "1 more repetition"
    assert rounds.within_reach(7200, 4)
    assert not rounds.within_reach(7201, 4)
    assert not SampleUnit().within_reach(1001, 4)
    assert not BLOCKS.within_reach(None, 4)


@pytest.mark.parametrize(
    ("seconds", "text", "budget"),
    [
        (0.2, "1 s", "1s"),
        (6.1, "7 s", "7s"),
        (41, "45 s", "45s"),
        (91, "2 min", "2m"),
        (3601, "61 min", "61m"),
        (5401, "2 h", "2h"),
        (9001, "3 h", "3h"),
    ],
)
def test_estimates_of_time_are_rounded_up(seconds: float, text: str, budget: str) -> None:
    assert rough_duration(seconds * 1e9) == text
    assert rough_budget(seconds * 1e9) == budget
