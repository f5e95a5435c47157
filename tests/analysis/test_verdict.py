"""Verdicts on experiments whose truth is known."""

from __future__ import annotations

import pytest

from blklab.analysis.verdict import Analysis, analyse
from blklab.errors import UnknownNameError
from blklab.quantities.sample_units import BLOCKS
from blklab.records.experiment import ExperimentRecord
from blklab.report.sentences.answer import basis_text
from blklab.report.sentences.doubts import doubt_text
from blklab.testing.experiments import (
    SchedulerBehaviour,
    WorkloadBehaviour,
    make_experiment,
    make_spec,
    make_workload,
)


def _analyse(
    speeds: dict[str, float], *, noise: float = 0.01, blocks: int = 6, drift: float = 0.0, seed: int = 1
) -> Analysis:
    spec = make_spec(tuple(speeds), blocks=blocks, seed=seed)
    behaviours = {label: SchedulerBehaviour(speed=speed, noise=noise) for label, speed in speeds.items()}
    return analyse(make_experiment(spec, behaviours=behaviours, drift=drift))


def test_a_clear_winner_is_named() -> None:
    analysis = _analyse({"none": 1.0, "mq-deadline": 1.3, "bfq": 0.8})
    assert (analysis.verdict.status, analysis.verdict.best) == ("best", ["mq-deadline"])
    assert "mq-deadline is best" in basis_text(analysis.verdict.basis)
    assert "against `none`" in basis_text(analysis.verdict.basis)


def test_a_clear_winner_is_found_on_a_machine_that_slows_down_by_half() -> None:
    analysis = _analyse({"none": 1.0, "mq-deadline": 1.3, "bfq": 0.8}, drift=-0.5, blocks=8)
    assert (analysis.verdict.status, analysis.verdict.best) == ("best", ["mq-deadline"])


def test_equal_schedulers_are_called_equal() -> None:
    analysis = _analyse({"none": 1.0, "kyber": 1.0}, noise=0.003, blocks=8)
    assert (analysis.verdict.status, sorted(analysis.verdict.best)) == ("equal", ["kyber", "none"])
    assert "equal within 2 %" in basis_text(analysis.verdict.basis)


def test_equality_at_the_top_still_beats_the_rest() -> None:
    analysis = _analyse({"none": 1.0, "kyber": 1.0, "bfq": 0.6}, noise=0.002, blocks=8)
    assert (analysis.verdict.status, sorted(analysis.verdict.best)) == ("equal", ["kyber", "none"])
    assert "ahead of bfq" in basis_text(analysis.verdict.basis)


def test_a_real_difference_that_does_not_matter_is_equality() -> None:
    analysis = _analyse({"none": 1.0, "kyber": 1.008}, noise=0.0005, blocks=8)
    assert analysis.verdict.status == "equal"
    assert next(c for c in analysis.comparisons if c.metric == "iops").p_adjusted < 0.05


def test_noise_leaves_the_question_open_and_says_for_how_long() -> None:
    analysis = _analyse({"none": 1.0, "kyber": 1.05}, noise=0.15, blocks=5)
    assert (analysis.verdict.status, analysis.verdict.best) == ("undecided", [])
    assert sorted(analysis.verdict.candidates) == ["kyber", "none"]
    more = analysis.verdict.more_blocks
    assert more is not None and more > 0
    found = analysis.verdict.more_range
    assert found is not None and found.least <= more
    assert found.most is None or found.most >= more
    text = basis_text(analysis.verdict.basis)
    assert f"{BLOCKS.more_between(found.least, found.most, 2)} would probably decide" in text
    assert "undecided between" in text


def test_two_blocks_decide_nothing() -> None:
    analysis = _analyse({"none": 1.0, "bfq": 3.0}, noise=0.0001, blocks=2)
    assert analysis.verdict.status == "undecided"
    assert "at least 3 repetitions" in basis_text(analysis.verdict.basis)


def test_a_scheduler_against_itself_seldom_wins() -> None:
    """A/A under the noise of a poor machine, decided by chance alone: 200 experiments at 95 %."""
    winners = sum(
        _analyse({"a=none": 1.0, "b=none": 1.0}, noise=0.2, blocks=6, seed=seed).verdict.status == "best"
        for seed in range(200)
    )
    assert winners <= 10 + 3 * 3  # 5 % and three binomial standard deviations


def test_lower_is_better_for_latencies() -> None:
    spec = make_spec(("none", "bfq"), [make_workload("latency", decide_by="latency_p99")], blocks=6)
    record = make_experiment(spec, behaviours={"bfq": SchedulerBehaviour(speed=3.0)})
    analysis = analyse(record)
    assert (analysis.verdict.status, analysis.verdict.best) == ("best", ["bfq"])
    assert "latency p99" in basis_text(analysis.verdict.basis)
    assert "latency p99 -6" in basis_text(analysis.verdict.basis)


def _two_workloads(reads_winner: str, writes_winner: str) -> ExperimentRecord:
    spec = make_spec(
        ("none", "bfq"), [make_workload("reads"), make_workload("writes", reads=False)], blocks=6
    )
    return make_experiment(
        spec,
        workloads={
            "reads": WorkloadBehaviour(schedulers={reads_winner: SchedulerBehaviour(speed=1.5)}),
            "writes": WorkloadBehaviour(schedulers={writes_winner: SchedulerBehaviour(speed=1.5)}),
        },
    )


def test_one_winner_of_all_workloads_wins() -> None:
    verdict = analyse(_two_workloads("bfq", "bfq")).verdict
    assert (verdict.status, verdict.best) == ("best", ["bfq"])


def test_different_winners_are_no_verdict_for_all() -> None:
    verdict = analyse(_two_workloads("bfq", "none")).verdict
    assert (verdict.status, verdict.best) == ("undecided", [])
    assert basis_text(verdict.basis) == "it depends on the work: reads: bfq; writes: `none`"


def test_a_control_that_differs_withholds_the_recommendation() -> None:
    spec = make_spec(
        ("none", "bfq"), [make_workload("reads"), make_workload("cached", control=True)], blocks=6
    )
    record = make_experiment(
        spec,
        behaviours={label: SchedulerBehaviour(noise=0.002) for label in ("none", "bfq")},
        workloads={"cached": WorkloadBehaviour(schedulers={"bfq": SchedulerBehaviour(speed=1.4)})},
    )
    analysis = analyse(record)
    verdict = analysis.verdict
    assert (verdict.status, verdict.best, verdict.choice) == ("withheld", [], None)
    assert sorted(verdict.candidates) == ["bfq", "none"]
    text = basis_text(verdict.basis)
    assert text.startswith("withheld because the control cached differs; otherwise: reads")
    assert len(analysis.verdict.doubts) == 1
    assert "control cached differs" in doubt_text(analysis.verdict.doubts[0])


def test_failed_runs_are_counted_and_left_out() -> None:
    spec = make_spec(("none", "bfq"), blocks=6)
    workload = spec.workloads[0].name
    record = make_experiment(
        spec,
        behaviours={"bfq": SchedulerBehaviour(speed=2)},
        failures=[(0, workload, "bfq"), (3, workload, "bfq")],
    )
    analysis = analyse(record)
    iops = [comparison for comparison in analysis.comparisons if comparison.metric == "iops"]
    assert [comparison.n for comparison in iops] == [4]
    assert analysis.verdict.best == ["bfq"]
    assert "2 of 12 runs failed" in doubt_text(analysis.verdict.doubts[0])


def test_a_scheduler_that_never_ran_leaves_all_open() -> None:
    spec = make_spec(("none", "bfq"), blocks=4)
    workload = spec.workloads[0].name
    record = make_experiment(spec, failures=[(block, workload, "bfq") for block in range(4)])
    verdict = analyse(record).verdict
    assert (verdict.status, verdict.best) == ("undecided", [])
    assert "no figure for bfq" in basis_text(verdict.basis)


def test_no_samples_at_all() -> None:
    record = make_experiment(make_spec(blocks=4), blocks_made=0)
    verdict = analyse(record).verdict
    assert verdict.status == "undecided"


def test_a_comparison_turned_round_says_the_same() -> None:
    analysis = _analyse({"none": 1.0, "bfq": 1.5})
    pair = next(comparison for comparison in analysis.comparisons if comparison.metric == "iops")
    back = pair.seen_from(pair.second)
    assert (pair.outcome, back.outcome) == ("worse", "better")
    assert back.ratio == pytest.approx(1 / pair.ratio)
    assert back.seen_from(pair.first).ratio == pytest.approx(pair.ratio)
    assert back.ci_low is not None
    assert back.ci_high is not None
    assert back.ci_low < back.ratio < back.ci_high


def test_an_unknown_deciding_metric_is_named() -> None:
    spec = make_spec(("none", "bfq"), [make_workload("reads", decide_by="speed")])
    with pytest.raises(UnknownNameError, match="'speed'"):
        analyse(make_experiment(spec))


def test_results_lie_within_their_intervals_and_agree_with_ratios() -> None:
    analysis = _analyse({"none": 1.0, "bfq": 1.5})
    means = {result.scheduler: result for result in analysis.results if result.metric == "iops"}
    for result in means.values():
        assert result.ci_low is not None
        assert result.ci_high is not None
        assert result.ci_low <= result.mean <= result.ci_high
        assert result.n == 6
    pair = next(comparison for comparison in analysis.comparisons if comparison.metric == "iops")
    assert pair.ratio == pytest.approx(means[pair.first].mean / means[pair.second].mean)


def test_an_unchanged_copy_that_differs_withholds_the_recommendation() -> None:
    """A module without a change is its original, so something else than a patch is at work."""
    labels = ("kyber", "kyber@copy", "kyber@mine")
    for speed, status in ((1.0, "best"), (1.2, "withheld")):
        behaviours = {
            "kyber": SchedulerBehaviour(noise=0.002),
            "kyber@copy": SchedulerBehaviour(speed=speed, noise=0.002),
            "kyber@mine": SchedulerBehaviour(speed=1.5, noise=0.002),
        }
        verdict = analyse(make_experiment(make_spec(labels, blocks=6), behaviours=behaviours)).verdict
        assert verdict.status == status
    assert verdict.choice is None
    text = basis_text(verdict.basis)
    assert text.startswith("withheld because the unchanged copy kyber@copy differs from its original")
    assert "kyber@copy is kyber without a change" in doubt_text(verdict.doubts[0])


def test_a_guest_kernel_called_copy_is_no_placebo() -> None:
    labels = ("kyber", "kyber@copy")
    spec = make_spec(labels, blocks=6, target="uml:nvme-tlc")
    behaviours = {"kyber": SchedulerBehaviour(noise=0.002), "kyber@copy": SchedulerBehaviour(1.2, 0.002)}
    assert analyse(make_experiment(spec, behaviours=behaviours)).verdict.status == "best"
