"""Verdicts for classes of drives by a goal: what each drive's score is, and which drives count."""

from __future__ import annotations

import math

import numpy as np
import pytest

from blklab.analysis.fleet import FleetAnalysis, analyse_fleet
from blklab.analysis.fleet_goal import FleetGoal
from blklab.analysis.verdict import analyse
from blklab.errors import UnknownNameError
from blklab.records.experiment import ExperimentRecord
from blklab.report.sentences.answer import basis_text
from blklab.report.sentences.fleet import fleet_remark_text
from blklab.report.sentences.goals import absent_text
from blklab.spec.goals import parse_goal
from blklab.testing.experiments import SchedulerBehaviour, make_experiment, make_spec, make_workload
from fleet_records import make_fleet, on_drive


def _analysed(records: list[ExperimentRecord], goal: str) -> tuple[FleetAnalysis, FleetGoal]:
    found = analyse_fleet(records, confidence=0.95, margin=0.02, goal=parse_goal(goal))
    assert found.goal is not None
    return found, found.goal


def _fast_with_a_tail(drives: int = 6) -> list[ExperimentRecord]:
    """bfq does more I/Os than none, but its slow ones are far slower."""
    behaviours = {"none": SchedulerBehaviour(), "bfq": SchedulerBehaviour(speed=1.15, tail=2.0)}
    return [
        on_drive(make_experiment(make_spec(tuple(behaviours), blocks=5, seed=n), behaviours=behaviours), n)
        for n in range(drives)
    ]


def test_a_drive_has_the_score_of_its_own_report() -> None:
    records = make_fleet({"none": 0.0, "bfq": 0.15}, drives=3)
    goal = "iops=0.6,latency_p99=0.4"
    _, found = _analysed(records, goal)
    (pair,) = found.against("bfq")
    for record, own in zip(records, pair.drives, strict=True):
        spec = record.spec.model_copy(update={"goal": parse_goal(goal)})
        alone = analyse(record.model_copy(update={"spec": spec})).goal
        assert alone is not None
        (expected,) = (one.seen_from("bfq") for one in alone.comparisons)
        assert (own.run_id, own.n) == (record.run_id, expected.n)
        assert own.ratio == pytest.approx(expected.ratio)
        assert own.ci_low == pytest.approx(expected.ci_low)
        assert own.ci_high == pytest.approx(expected.ci_high)


@pytest.mark.parametrize(("goal", "winner"), [("iops=9,latency_p99=1", "bfq"), ("latency_p99=1", "none")])
def test_the_weights_decide_where_metrics_conflict(goal: str, winner: str) -> None:
    found, of_goal = _analysed(_fast_with_a_tail(), goal)
    assert (found.verdict.status, found.verdict.choice) == ("best", winner)
    assert basis_text(found.verdict.basis).startswith("for the goal ")
    assert of_goal.conflict
    assert [point.standing for point in of_goal.front] == ["front", "front"]
    (pair,) = of_goal.against(winner)
    assert pair.new_drive == "better"
    assert (pair.chance_better or 0) > 0.95
    assert pair.seen_from(pair.mean.second).new_drive == "worse"


def test_lower_is_better_in_some_metrics() -> None:
    _, of_goal = _analysed(_fast_with_a_tail(), "latency_p99=1")
    (score,), (tail,) = of_goal.against("none"), of_goal.against("none", "latency_p99")
    assert score.mean.ratio > 1
    # The score turns ratios so that more is better.
    assert tail.mean.ratio == pytest.approx(1 / score.mean.ratio)
    assert tail.mean.outcome == score.mean.outcome == "better"
    assert tail.new_drive == "better"


def test_workloads_of_different_runs_are_put_together() -> None:
    reads = make_fleet({"none": 0.0, "bfq": 0.2}, drives=4, workloads=[make_workload("reads")])
    writes = [
        on_drive(record, number, run_id=f"20260103-0304-b{number:03d}")
        for number, record in enumerate(
            make_fleet({"none": 0.0, "bfq": -0.1}, drives=4, workloads=[make_workload("writes", reads=False)])
        )
    ]
    alone = [_analysed(several, "iops=1")[1].against("bfq")[0] for several in (reads, writes)]
    found, together = _analysed([*reads, *writes], "iops=1")
    (pair,) = together.against("bfq")
    assert sorted(together.workloads) == ["reads", "writes"]
    assert not found.remarks
    for drive, first, second in zip(pair.drives, alone[0].drives, alone[1].drives, strict=True):
        assert drive.ratio == pytest.approx(math.sqrt(first.ratio * second.ratio))
        assert drive.run_id == f"{first.run_id}, {second.run_id}"
        widths = [math.log((one.ci_high or 0) / (one.ci_low or 1)) for one in (drive, first, second)]
        # The mean of two errors that do not depend on each other.
        assert widths[0] == pytest.approx(math.hypot(widths[1], widths[2]) / 2, rel=0.05)


def test_drives_that_were_not_tested_under_all_workloads_are_left_out() -> None:
    both = [make_workload("reads"), make_workload("writes", reads=False)]
    effects = {"none": 0.0, "bfq": 0.15}
    records = make_fleet(effects, drives=4, workloads=both)
    records.append(on_drive(make_fleet(effects, drives=1, workloads=both[:1])[0], 4))
    records[4] = records[4].model_copy(update={"run_id": "20260103-0304-c004"})
    found, of_goal = _analysed(records, "iops=1")
    assert len(found.drives) == 5
    assert of_goal.against("bfq")[0].mean.n == 4
    assert any("1 drive left out for the goal" in fleet_remark_text(remark) for remark in found.remarks)
    # Two drives cannot tell a spread, so what only they were tested under is not part of the score.
    few = [*make_fleet(effects, drives=2, workloads=both)]
    few += [
        on_drive(record, number + 2, run_id=f"20260103-0304-d{number:03d}")
        for number, record in enumerate(make_fleet(effects, drives=4, workloads=both[:1]))
    ]
    found, of_goal = _analysed(few, "iops=1")
    assert of_goal.workloads == ["reads"]
    assert of_goal.against("bfq")[0].mean.n == 6
    assert "writes does not count for the goal: 2 drives with figures for it" in map(
        fleet_remark_text, found.remarks
    )


def test_controls_are_no_part_of_the_score_and_still_withhold_it() -> None:
    control = make_workload("cached-read", control=True)
    found, of_goal = _analysed(
        make_fleet({"none": 0.0, "bfq": 0.15}, workloads=[make_workload("work"), control]), "iops=1"
    )
    assert of_goal.workloads == ["work"]
    assert found.verdict.status == "withheld"


def test_metrics_that_workloads_lack_are_named() -> None:
    _, of_goal = _analysed(make_fleet({"none": 0.0, "bfq": 0.15}), "iops=1,sync_latency_p99=1")
    assert list(map(absent_text, of_goal.absent)) == ["random-read-4k-qd32 has no sync latency p99"]
    found, of_goal = _analysed(make_fleet({"none": 0.0, "bfq": 0.15}), "sync_latency_p99=1")
    assert (found.verdict.status, of_goal.comparisons) == ("undecided", [])
    with pytest.raises(UnknownNameError, match="speediness"):
        _analysed(make_fleet({"none": 0.0, "bfq": 0.15}), "speediness=1")


def test_at_most_five_percent_of_equal_fleets_have_a_winner() -> None:
    winners = 0
    for fleet in range(30):
        records = []
        for drive in range(3):
            own = float(np.random.default_rng([fleet, drive]).normal(0, 0.05))
            behaviours = {"bfq": SchedulerBehaviour(speed=math.exp(own))}
            spec = make_spec(("none", "bfq"), blocks=3, seed=100 * fleet + drive)
            records.append(on_drive(make_experiment(spec, behaviours=behaviours), drive))
        winners += _analysed(records, "balanced")[0].verdict.status == "best"
    assert winners <= 5  # 5 % would exceed this once in fifty
