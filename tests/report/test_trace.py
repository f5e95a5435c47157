"""Results derived from a timeline: submitters, holding times, depths, and thinning."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from trace_cases import CASES, cast_for

from blklab.report.trace.document import ExplainDocument, explain_document, head_jumps
from blklab.report.trace.holding import holding_of, turns
from blklab.report.trace.html import render_explanation_page
from blklab.report.trace.steps import Steps, distinct_dots, extremes_by_column
from blklab.report.trace.submitters import FLUSH_NAME
from blklab.report.trace.wording import findings


@pytest.mark.parametrize("case", CASES)
def test_the_device_is_held_by_one_party_at_a_time(case: str) -> None:
    traced = cast_for(case)
    holding = holding_of(traced)
    edges = np.linspace(0, traced.end_ns, 200)
    held = sum(holding.within(submitter, edges) for submitter in range(len(traced.submitters)))
    assert np.all(np.asarray(held) <= 1 + 1e-9)
    whole = sum(holding.share(submitter, 0, traced.end_ns) for submitter in range(len(traced.submitters)))
    document = explain_document(traced, holding)
    assert whole == pytest.approx(1 - document.idle_share, abs=1e-3)
    assert [submitter.name for submitter in document.parties] == [
        submitter.name for submitter in traced.submitters
    ]
    assert sum(submitter.requests for submitter in document.parties) == len(traced.served)
    ExplainDocument.model_validate_json(document.model_dump_json(by_alias=True))
    assert findings(document)


def test_turns_of_a_disk_follow_one_another() -> None:
    starts, ends = turns(cast_for("two-jobs"))
    assert (starts <= ends).all()
    assert (starts[1:] >= ends[:-1]).all()


def test_equal_work_on_equal_devices_is_shared_equally() -> None:
    traced = cast_for("equal")
    holding = holding_of(traced)
    shares = [holding.share(submitter, 0, traced.end_ns) for submitter in range(2)]
    assert shares[0] == pytest.approx(0.5, abs=0.01)
    assert shares[1] == pytest.approx(0.5, abs=0.01)
    assert head_jumps(traced) is None


def test_sequential_work_hardly_moves_the_head() -> None:
    jumps = head_jumps(cast_for("sequential"))
    assert jumps is not None
    assert np.median(jumps) == 0


def test_the_slowest_is_the_slowest_and_its_time_is_accounted_for() -> None:
    traced = cast_for("two-jobs")
    document = explain_document(traced, holding_of(traced))
    assert document.slowest is not None
    longest_us = float((traced.served["complete_ns"] - traced.served["arrive_ns"]).max()) / 1000
    assert document.slowest.waiting_us + document.slowest.in_device_us == pytest.approx(longest_us)
    assert sum(document.slowest.held_meanwhile.values()) == pytest.approx(1, abs=0.01)


def test_the_disks_of_an_array_are_shown_one_by_one() -> None:
    traced = cast_for("array")
    document = explain_document(traced, holding_of(traced))
    assert [member.disk for member in document.members] == [0, 1, 2, 3]
    assert sum(member.requests for member in document.members) == document.requests
    page = render_explanation_page(traced, holding_of(traced), document)
    for member in document.members:
        # Random places on 4 TB: the head's way is a good part of that.
        assert member.mean_jump_bytes is not None
        assert 0.1e12 < member.mean_jump_bytes < 2.5e12
        assert 0 < member.busy_share <= 1
        assert f">Disk {member.disk}</h2>" in page
    assert document.idle_share <= min(1 - member.busy_share for member in document.members)
    alone = cast_for("two-jobs")
    assert explain_document(alone, holding_of(alone)).members == []


def test_flushes_are_a_party_of_their_own() -> None:
    traced = cast_for("log")
    assert FLUSH_NAME in [submitter.name for submitter in traced.submitters]


def test_envelopes_keep_every_extreme() -> None:
    begins = np.array([0.0, 10.0, 10.0, 50.0])
    ends = np.array([20.0, 20.0, 11.0, 90.0])
    steps = Steps.between(begins, ends)
    low, mean, high = steps.envelope(np.array([0.0, 25.0, 50.0, 100.0]))
    assert low.tolist() == [0, 0, 0]
    assert high.tolist() == [3, 0, 1]
    # 10 + 3 + 9 * 2 + 0 over 25; nothing; 40 over 50.
    assert mean.tolist() == pytest.approx([31 / 25, 0, 0.8])
    assert [part.tolist() for part in Steps.between(ends[:0], ends[:0]).envelope(ends)] == [[0.0] * 3] * 3


def test_a_hand_over_at_one_moment_leaves_no_gap() -> None:
    steps = Steps.between(np.array([0.0, 10.0]), np.array([10.0, 20.0]))
    low, _, high = steps.envelope(np.array([1.0, 19.0]))
    assert (low.tolist(), high.tolist()) == ([1], [1])


def test_thinned_lines_keep_first_last_and_extremes() -> None:
    stream = np.random.default_rng(1)
    times: NDArray[np.float64] = np.sort(stream.uniform(0, 100, 50_000))
    values = stream.normal(size=50_000)
    points = extremes_by_column(times, values, np.linspace(0, 100.001, 101))
    assert len(points) <= 400
    assert max(value for _, value in points) == values.max()
    assert min(value for _, value in points) == values.min()
    assert points[0] == (times[0], values[0])
    assert points[-1] == (times[-1], values[-1])
    assert [time for time, _ in points] == sorted(time for time, _ in points)


def test_thinned_dots_cover_the_same_cells() -> None:
    stream = np.random.default_rng(2)
    x, y = stream.uniform(60, 860, 300_000), stream.normal(150, 20, 300_000)
    left, top, cell = distinct_dots(x, y)
    assert len(left) < 15_000
    for dots, thinned in ((x, left), (y, top)):
        assert abs(dots.max() - thinned.max()) <= cell
        assert abs(dots.min() - thinned.min()) <= cell


@pytest.mark.parametrize("case", CASES)
def test_pages_are_small_and_the_same_each_time(case: str) -> None:
    traced = cast_for(case)
    holding = holding_of(traced)
    document = explain_document(traced, holding)
    page = render_explanation_page(traced, holding, document)
    assert len(page) < 4_000_000
    assert page == render_explanation_page(traced, holding, document)
    assert "nan" not in page.lower().replace("nanosecond", "")
