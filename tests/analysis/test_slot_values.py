"""Values of slots: percentiles from merged histograms, the same whenever one looks."""

from __future__ import annotations

import pytest
from slot_samples import slot_samples, switched_spec

from blklab.analysis.comparison import compare_all
from blklab.analysis.designs import design_of
from blklab.analysis.goal_scores import goal_scores
from blklab.analysis.metrics import METRICS
from blklab.analysis.questions import workload_questions
from blklab.analysis.slot_values import merged_jobs
from blklab.analysis.statistics.switchback import WARM_UP
from blklab.analysis.values import ExperimentValues, values_begun
from blklab.spec.goals import parse_goal

ROUNDS = 70
SPEC = switched_spec("ab")
SAMPLES = slot_samples(SPEC, ROUNDS, lambda slots, place, window: 9 + place % 2)
"""Some 100 I/Os a slot."""


def _values(samples: int) -> ExperimentValues:
    values = values_begun(SPEC, None)
    for sample in SAMPLES[:samples]:
        values.add(sample)
    return values


def test_rare_events_are_sought_in_groups_of_rounds() -> None:
    series = _values(len(SAMPLES)).series
    assert list(series["reads", "iops"]["a"]) == list(range(ROUNDS))
    assert list(series["reads", "latency_p50"]["a"]) == list(range(ROUNDS))
    assert list(series["reads", "latency_p99"]["a"]) == list(range(0, ROUNDS - 3, 4))
    assert list(series["reads", "latency_p99_9"]["b"]) == [0, 32]


def test_a_group_has_the_percentile_of_its_merged_histogram() -> None:
    slots = [s.jobs for s in SAMPLES if s.cell.scheduler == "a" and 8 <= s.cell.block < 12]
    (job,) = merged_jobs(slots)
    assert job.directions[0].ios == sum(jobs[0].directions[0].ios for jobs in slots)
    assert job.runtime_ns == sum(jobs[0].runtime_ns for jobs in slots)
    expected = METRICS["latency_p99"].compute([job])
    assert _values(len(SAMPLES)).series["reads", "latency_p99"]["a"][8] == expected


def test_values_stay_as_they_are_while_more_rounds_come() -> None:
    final = _values(len(SAMPLES)).series
    for looked_at in range(0, len(SAMPLES), 9):
        for key, series in _values(looked_at).series.items():
            for label, values in series.items():
                assert values.items() <= final[key][label].items()


def test_the_size_of_groups_waits_for_the_first_rounds() -> None:
    before, after = (_values(2 * WARM_UP + more).series["reads", "latency_p99"] for more in (0, 1))
    assert before == {}
    assert set(after["a"]) == set(after["b"]) == {0}


def test_a_group_with_a_missing_slot_has_no_value() -> None:
    values = values_begun(SPEC, None)
    for sample in SAMPLES:
        failed = sample.cell.scheduler == "a" and sample.cell.block == 9
        values.add(sample.model_copy(update={"status": "failed", "jobs": []}) if failed else sample)
    series = values.series["reads", "latency_p99"]
    assert 8 not in series["a"]
    assert 8 in series["b"]
    assert 9 not in values.series["reads", "iops"]["a"]


def test_a_goal_has_one_group_for_all_its_metrics() -> None:
    goal = parse_goal("iops=0.5,latency_p99=0.5")
    positions = list(range(0, ROUNDS - 3, 4))
    early, late = (goal_scores(_values(count), goal) for count in (60, len(SAMPLES)))
    assert list(late.series["a"]) == list(late.series["b"]) == positions
    assert all(list(series["a"]) == positions for series in late.dimensions.values())
    # Scores are relative to the reference's mean so far, which cancels in every ratio.
    for position in early.series["a"]:
        ratios = [scores.series["a"][position] / scores.series["b"][position] for scores in (early, late)]
        assert ratios[0] == pytest.approx(ratios[1])


def test_the_rounds_still_needed_are_rounds_and_not_groups() -> None:
    values = _values(len(SAMPLES))
    assert values.samples_per_value("reads", "iops") == 1
    assert values.samples_per_value_together([("reads", "iops"), ("reads", "latency_p99")]) == 4
    p99 = next(one for one in workload_questions(values) if one.metric.name == "latency_p99")
    assert p99.samples_per_value == 4
    (pairs,) = compare_all([p99], design_of(SPEC), ["a", "b"])
    assert pairs[0].n == ROUNDS // 4
    assert pairs[0].more_blocks is not None and pairs[0].more_blocks % 4 == 0


def test_metrics_without_any_io_do_not_enlarge_groups() -> None:
    values = _values(len(SAMPLES))
    assert values.samples_per_value("reads", "sync_latency_p99") == 1
    assert values.series["reads", "sync_latency_p99"] == {}
