"""The course of runs in words, and estimates too large to print."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_cases import analysed

from blklab.analysis.steady_state import change_over_run
from blklab.quantities.formatting import MOST_BLOCKS_WITHIN_REACH
from blklab.report.documents.comparison import compare_document
from blklab.report.documents.findings import SteadinessPart
from blklab.report.summary.throughput_over_time import course_text
from blklab.report.text.advice import next_steps


def _part(change: float, low: float | None = None, high: float | None = None) -> SteadinessPart:
    return SteadinessPart(
        workload="reads",
        scheduler="none",
        n=3,
        change=change,
        ci_low=low,
        ci_high=high,
        state="changing",
        warm_up_ns=0,
    )


def test_the_ends_of_a_line_are_compared() -> None:
    falling = change_over_run([120, 110, 100, 90, 80])
    assert course_text(_part(falling)) == "last fifth at 67 % of the first"
    assert course_text(_part(-falling)) == "first fifth at 67 % of the last"
    assert course_text(_part(-0.4, -0.5, -0.3)) == "last fifth at 67 % [60, 74] of the first"
    assert course_text(_part(0.4, 0.3, 0.5)) == "first fifth at 67 % [60, 74] of the last"
    assert course_text(_part(0.001, -0.001, 0.003)) == "first fifth at 99.9 % [99.7, 100.1] of the last"


def test_a_run_that_stands_still_after_a_burst() -> None:
    assert change_over_run([500, 0, 0, 0, 0]) == pytest.approx(-4)
    assert course_text(_part(-4.0)) == "last fifth at 0 % of the first"
    assert course_text(_part(-2.01, -2.53, -1.5)) == "last fifth at 0 % [0, 14] of the first"
    assert course_text(_part(-0.1, -2.2, 2.0)) == "last fifth at 90 % [0, ∞] of the first"


@given(st.floats(-4, 4), st.floats(0, 8))
def test_no_percentage_is_negative_and_the_interval_holds_the_figure(change: float, half: float) -> None:
    text = course_text(_part(change, change - half, change + half))
    share, low, high = (float(word.replace("∞", "inf")) for word in re.findall(r"[\d.]+|∞", text))
    assert 0 <= low <= share <= high
    assert share <= 100


@pytest.mark.parametrize(
    ("more", "told"),
    [(1, True), (MOST_BLOCKS_WITHIN_REACH, True), (MOST_BLOCKS_WITHIN_REACH + 1, False), (None, False)],
)
def test_more_blocks_than_anybody_runs_are_no_advice(more: int | None, told: bool) -> None:
    record, analysis = analysed("undecided")
    verdict = replace(analysis.verdict, more_blocks=more, more_range=None)
    document = compare_document(record, replace(analysis, verdict=verdict))
    texts = " ".join(step.text for step in next_steps(document))
    assert ("would probably settle" in texts) is told
    assert ("are unlikely to settle it" in texts) is not told
