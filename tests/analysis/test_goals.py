"""Goals, the Pareto front and ties, on experiments whose truth is known."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blklab.analysis.comparison import PairwiseComparison
from blklab.analysis.designs import design_of
from blklab.analysis.goal_parts import goal_lead
from blklab.analysis.goal_scores import goal_scores
from blklab.analysis.goal_verdict import GoalFindings
from blklab.analysis.metrics import METRICS
from blklab.analysis.pareto import conflicting, pareto_front
from blklab.analysis.ratios import Outcome
from blklab.analysis.tie_breaking import break_tie
from blklab.analysis.values import experiment_values, metric_values
from blklab.analysis.verdict import Analysis, analyse
from blklab.errors import UnknownNameError
from blklab.records.experiment import ExperimentRecord
from blklab.report.sentences.answer import basis_text, choice_reason_text
from blklab.report.sentences.first_place import first_place_text
from blklab.report.sentences.goals import absent_text, lead_text
from blklab.spec.goals import goal_from_weights, parse_goal
from blklab.testing.experiments import (
    SchedulerBehaviour,
    WorkloadBehaviour,
    make_experiment,
    make_spec,
    make_target,
    make_workload,
)


def _traded(goal: str, *, blocks: int = 8, seed: int = 1) -> ExperimentRecord:
    """bfq has half of none's IOPS, and a quarter of its p99: more depth would not change either."""
    spec = make_spec(("none", "bfq"), blocks=blocks, goal=goal, seed=seed)
    return make_experiment(
        spec, behaviours={"none": SchedulerBehaviour(1.0, tail=3.0), "bfq": SchedulerBehaviour(0.7, tail=0.3)}
    )


def _goal(analysis: Analysis) -> GoalFindings:
    assert analysis.goal is not None
    return analysis.goal


@pytest.mark.parametrize(
    ("goal", "best"), [("throughput", "none"), ("latency_p99=1", "bfq"), ("iops=20,latency_p99=1", "none")]
)
def test_the_answer_depends_on_the_purpose(goal: str, best: str) -> None:
    verdict = analyse(_traded(goal)).verdict
    assert (verdict.status, verdict.best, verdict.choice) == ("best", [best], best)
    assert basis_text(verdict.basis).startswith("for the goal ")


def test_a_score_is_the_weighted_geometric_mean_of_the_ratios() -> None:
    record = _traded("iops=3,latency_p99=1")
    scores = goal_scores(experiment_values(record), parse_goal("iops=3,latency_p99=1"))
    workload = record.spec.workloads[0]
    iops, p99 = (metric_values(record.samples, workload, METRICS[name]) for name in ("iops", "latency_p99"))
    for block in range(8):
        expected = (iops["bfq"][block] / iops["none"][block]) ** 0.75 * (
            p99["none"][block] / p99["bfq"][block]
        ) ** 0.25
        assert scores.series["bfq"][block] / scores.series["none"][block] == pytest.approx(expected)


@given(st.floats(0.01, 100), st.integers(2, 50))
def test_only_proportions_of_weights_matter(weight: float, factor: int) -> None:
    record = _traded("throughput", blocks=3)
    values = experiment_values(record)
    one = goal_scores(values, goal_from_weights({"iops": weight, "latency_p99": 1}))
    other = goal_scores(values, goal_from_weights({"iops": weight * factor, "latency_p99": factor}))
    assert one.series.keys() == other.series.keys() == {choice.label for choice in record.spec.schedulers}
    for label, series in one.series.items():
        assert other.series[label] == pytest.approx(dict(series))


def test_the_units_of_a_metric_do_not_matter() -> None:
    """The same experiment on a disk a hundred times faster gives the same ratios of scores."""
    spec = make_spec(("none", "bfq"), blocks=5, goal="balanced")
    ratios = []
    for speed in (12_000.0, 1_200_000.0):
        record = make_experiment(
            spec,
            behaviours={"bfq": SchedulerBehaviour(0.8)},
            workloads={"random-read-4k-qd32": WorkloadBehaviour(ios_per_second=speed)},
        )
        ratios.append(_goal(analyse(record)).comparisons[0].ratio)
    assert ratios[0] == pytest.approx(ratios[1], rel=0.02)


def test_workloads_count_alike_and_controls_not_at_all() -> None:
    workloads = [make_workload("a"), make_workload("b", reads=False), make_workload("c", control=True)]
    spec = make_spec(("none", "bfq"), workloads, blocks=6, goal="throughput")
    quiet = SchedulerBehaviour(noise=0.001)
    record = make_experiment(
        spec,
        behaviours={"none": quiet, "bfq": quiet},
        workloads={
            "a": WorkloadBehaviour(50_000, schedulers={"bfq": SchedulerBehaviour(2.0, 0.001)}),
            "b": WorkloadBehaviour(90, schedulers={"bfq": SchedulerBehaviour(0.5, 0.001)}),
        },
    )
    pair = _goal(analyse(record)).comparisons[0].seen_from("bfq")
    assert pair.ratio == pytest.approx(1, abs=0.02)  # 2 times and half: the geometric mean is 1
    assert _goal(analyse(record)).verdict is not None


def test_what_a_workload_lacks_drops_out_there_and_is_said() -> None:
    spec = make_spec(("none", "bfq"), blocks=4, goal="latency")
    goal = _goal(analyse(make_experiment(spec)))
    assert list(map(absent_text, goal.absent)) == ["random-read-4k-qd32 has no sync latency p99"]
    assert goal.verdict is not None
    assert goal.verdict.status in ("equal", "undecided")


def test_a_goal_that_nothing_serves_is_undecided() -> None:
    verdict = analyse(make_experiment(make_spec(("none", "bfq"), goal="fairness"))).verdict
    assert verdict.status == "undecided"
    assert basis_text(verdict.basis) == "undecided: no block has figures for the goal fairness"


def test_with_a_goal_only_the_goal_says_what_more_blocks_would_do() -> None:
    """They are added for the goal's question; each workload alone would name another number."""
    behaviours = {"bfq": SchedulerBehaviour(1.05, noise=0.15), "none": SchedulerBehaviour(noise=0.15)}
    texts = {}
    for goal in (None, "iops=1"):
        spec = make_spec(("none", "bfq"), blocks=5, goal=goal)
        analysis = analyse(make_experiment(spec, behaviours=behaviours))
        assert analysis.verdict.status == "undecided"
        assert "more repetition" in basis_text(analysis.verdict.basis)
        texts[goal] = first_place_text(analysis.metric_verdicts[0].place)
    assert texts[None].startswith(texts["iops=1"] + "; ")
    assert "more repetition" in texts[None] and "more repetition" not in texts["iops=1"]


def test_a_metric_that_does_not_exist() -> None:
    with pytest.raises(UnknownNameError, match="'speed'"):
        analyse(make_experiment(make_spec(goal="speed=1")))


def test_a_block_without_one_of_the_workloads_is_left_out() -> None:
    spec = make_spec(("none", "bfq"), [make_workload("a"), make_workload("b")], blocks=5, goal="throughput")
    record = make_experiment(spec, failures=[(1, "a", "bfq"), (3, "b", "none")])
    assert [pair.n for pair in _goal(analyse(record)).comparisons] == [3]


def test_a_scheduler_against_itself_seldom_wins_a_goal() -> None:
    """A/A: 80 experiments at 95 %, with a goal of three metrics over two workloads."""
    workloads = [make_workload("a"), make_workload("b", reads=False, syncs=True)]
    winners = 0
    for seed in range(80):
        spec = make_spec(("a=none", "b=none"), workloads, blocks=6, goal="latency", seed=seed)
        noisy = {label: SchedulerBehaviour(noise=0.2) for label in ("a", "b")}
        winners += analyse(make_experiment(spec, behaviours=noisy)).verdict.status == "best"
    assert winners <= 4 + 3 * 2  # 5 % and three binomial standard deviations


def test_a_control_withholds_a_goal_too() -> None:
    workloads = [make_workload("reads"), make_workload("cached", control=True)]
    record = make_experiment(
        make_spec(("none", "bfq"), workloads, goal="throughput"),
        behaviours={"bfq": SchedulerBehaviour(2.0)},
        workloads={"cached": WorkloadBehaviour(schedulers={"bfq": SchedulerBehaviour(1.4)})},
    )
    verdict = analyse(record).verdict
    assert (verdict.status, verdict.best, verdict.candidates) == ("withheld", [], ["bfq"])


# The front


def _pair(metric: str, first: str, second: str, outcome: Outcome) -> PairwiseComparison:
    return PairwiseComparison(
        workload="all",
        metric=metric,
        first=first,
        second=second,
        n=8,
        ratio=1.1,
        ci_low=1.0,
        ci_high=1.2,
        p_adjusted=0.01,
        outcome=outcome,
        more_blocks=None,
    )


def test_conflicting_metrics_put_both_on_the_front() -> None:
    goal = _goal(analyse(_traded("iops=1,latency_p99=1")))
    assert [(point.scheduler, point.standing) for point in goal.front] == [
        ("none", "front"),
        ("bfq", "front"),
    ]
    assert goal.conflict


def test_a_goal_of_one_metric_is_shown_against_what_it_costs() -> None:
    goal = _goal(analyse(_traded("throughput")))
    assert goal.dimensions == ["throughput", "latency_p99"]
    assert goal.conflict


def test_the_front_rests_on_outcomes_not_on_estimates() -> None:
    labels = ["a", "b", "c"]
    pairs = [
        _pair("x", "a", "b", "better"),
        _pair("y", "a", "b", "equal"),
        _pair("x", "a", "c", "better"),
        _pair("y", "a", "c", "undecided"),
        _pair("x", "b", "c", "equal"),
        _pair("y", "b", "c", "equal"),
    ]
    front = {point.scheduler: point for point in pareto_front(labels, pairs)}
    assert (front["a"].standing, front["b"].standing, front["c"].standing) == ("front", "dominated", "open")
    assert front["b"].dominated_by == ["a"]
    assert not conflicting(pairs)


@given(st.lists(st.tuples(st.floats(0.1, 10), st.floats(0.1, 10)), min_size=2, max_size=6, unique=True))
def test_without_doubt_the_front_is_the_classical_one(points: list[tuple[float, float]]) -> None:
    labels = [f"s{index}" for index in range(len(points))]

    def outcome(one: float, other: float) -> Outcome:
        return "better" if one > other else "worse" if one < other else "equal"

    pairs = [
        _pair(metric, labels[i], labels[j], outcome(points[i][axis], points[j][axis]))
        for i in range(len(points))
        for j in range(i + 1, len(points))
        for axis, metric in enumerate(("iops", "throughput"))
    ]
    found = {point.scheduler for point in pareto_front(labels, pairs) if point.standing == "front"}
    expected = {
        labels[i]
        for i, (x, y) in enumerate(points)
        if not any(a >= x and b >= y and (a, b) != (x, y) for a, b in points)
    }
    assert found == expected


# Ties


def _tied(default: str, *, cpu: float = 1.0) -> ExperimentRecord:
    spec = make_spec(("none", "kyber"), blocks=10)
    calm = SchedulerBehaviour(noise=0.001)
    target = make_target(spec).model_copy(update={"default_scheduler": default})
    return make_experiment(
        spec,
        behaviours={"none": calm, "kyber": SchedulerBehaviour(noise=0.001, cpu=cpu)},
        target=target,
        block_noise=0.001,
    )


def test_equals_go_to_the_default() -> None:
    for default in ("none", "kyber"):
        verdict = analyse(_tied(default, cpu=1.5)).verdict
        assert (verdict.status, verdict.choice) == ("equal", default)
        assert choice_reason_text(verdict.choice_reason) == "the default, which was in force before"
        advised = verdict.recommendation
        assert advised is not None and (advised.action, advised.scheduler) == ("keep", default)


def test_then_to_the_cheaper_in_cpu() -> None:
    verdict = analyse(_tied("bfq", cpu=1.5)).verdict
    assert (verdict.status, verdict.choice) == ("equal", "none")
    assert choice_reason_text(verdict.choice_reason).startswith("the cheapest in CPU: CPU per I/O")


def test_an_estimate_alone_breaks_no_tie() -> None:
    verdict = analyse(_tied("bfq")).verdict
    assert (verdict.status, verdict.choice, verdict.choice_reason) == ("equal", None, None)


def test_no_cpu_time_no_tie_break() -> None:
    record = _tied("bfq", cpu=1.5)
    samples = [
        sample.model_copy(
            update={"jobs": [job.model_copy(update={"cpu_user_ns": None}) for job in sample.jobs]}
        )
        for sample in record.samples
    ]
    values = experiment_values(record.model_copy(update={"samples": samples}))
    assert break_tie(values, ["none", "kyber"], design_of(record.spec)) is None


def test_scores_are_positive_and_the_reference_is_one() -> None:
    record = _traded("iops=1,latency_p99=1")
    goal = _goal(analyse(record))
    means = {result.scheduler: result.mean for result in goal.results}
    assert goal.reference == "none"  # mq-deadline, the default, was not tested
    assert means["none"] == pytest.approx(1)
    assert all(mean > 0 and math.isfinite(mean) for mean in means.values())


def test_the_part_that_decided_is_named_and_the_parts_make_up_the_score() -> None:
    goal = _goal(analyse(_traded("iops=20,latency_p99=1")))
    lead = goal.lead
    assert lead is not None and (lead.first, lead.second, lead.is_shown) == ("none", "bfq", True)
    assert [part.pair.metric for part in lead.parts] == ["iops", "latency_p99"]
    assert lead.parts[0].factor > 1 > lead.parts[1].factor
    (score,) = goal.comparisons
    assert math.prod(part.factor for part in lead.parts) == pytest.approx(score.seen_from("none").ratio)
    text = lead_text(lead)
    assert text.startswith("IOPS decides between `none` and bfq: +")
    assert "latency p99 speaks for bfq" in text


def test_an_open_goal_is_decided_by_no_part() -> None:
    lead = _goal(analyse(_traded("iops=20,latency_p99=1", blocks=2))).lead
    assert lead is not None and not lead.is_shown
    assert "does not yet decide" in lead_text(lead)


def test_a_first_place_that_all_share_is_decided_by_no_part() -> None:
    goal = _goal(analyse(_traded("iops=20,latency_p99=1")))
    assert goal.verdict is not None
    equal = [replace(pair, outcome="equal") for pair in goal.comparisons]
    assert goal_lead(goal.verdict, equal, [], {}) is None
    assert goal_lead(goal.verdict, goal.comparisons, [], {}) is not None
