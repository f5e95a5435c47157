"""Bounds of regret: their order, their words, and how often they hold."""

from __future__ import annotations

import math

import numpy as np
import pytest
from slot_samples import switched_spec

from blklab.analysis.designs import AnytimeDesign, Design, FixedDesign, SwitchbackDesign
from blklab.analysis.metrics import metric_named
from blklab.analysis.questions import Question
from blklab.analysis.regret import Regret, good_enough, known_bounds, regrets
from blklab.analysis.verdict import analyse
from blklab.experiment.racing import Race, race_of
from blklab.report.sentences.losses import bound_text
from blklab.testing.experiments import (
    SchedulerBehaviour,
    WorkloadBehaviour,
    make_experiment,
    make_spec,
    make_workload,
)

LABELS = ["a", "b", "c"]
TRUTH = {"a": 1.00, "b": 1.03, "c": 0.9}
DESIGNS: list[Design] = [
    FixedDesign(confidence=0.95, margin=0.02),
    AnytimeDesign(confidence=0.95, margin=0.02),
    SwitchbackDesign(confidence=0.95, margin=0.02),
]


def _question(seed: int, rounds: int, *, metric: str = "iops", noise: float = 0.04) -> Question:
    generator = np.random.default_rng(seed)
    values = {
        label: {n: TRUTH[label] * math.exp(generator.normal(0, noise)) for n in range(rounds)}
        for label in LABELS
    }
    return Question("reads", metric_named(metric), values)


@pytest.mark.parametrize("design", DESIGNS)
def test_bounds_hold_together_as_often_as_they_say(design: Design) -> None:
    wrong = 0
    for seed in range(200):
        found = regrets([_question(seed, 20)], design, LABELS, [])
        wrong += any(one.bound is not None and one.bound < 1.03 / TRUTH[one.label] - 1 for one in found)
    assert wrong <= 10 + 3 * 3


@pytest.mark.parametrize("design", DESIGNS)
def test_bounds_narrow_and_name_the_rival(design: Design) -> None:
    few, many = (regrets([_question(1, n)], design, LABELS, ["c"]) for n in (10, 200))
    assert [one.label for one in many] == ["c", "b", "a"]
    assert (many[0].against, many[2].against) == ("b", "b")
    before = {one.label: one.bound for one in few}
    for one in many:
        earlier = before[one.label]
        assert one.bound is not None and (earlier is None or one.bound < earlier)


def test_where_lower_is_better_the_faster_one_is_safe() -> None:
    found = regrets([_question(1, 60, metric="latency_mean")], DESIGNS[2], LABELS, [])
    assert [one.label for one in found] == ["c", "a", "b"]
    assert found[0].bound is not None and found[0].bound < 0.02
    assert found[-1].bound is not None and found[-1].bound > 0.13


def test_several_workloads_have_the_largest_bound_at_a_stricter_level() -> None:
    one, other = _question(1, 30), _question(1, 30, noise=0.001)
    alone = {found.label: found.bound or 0.0 for found in regrets([one], DESIGNS[2], LABELS, [])}
    both = {found.label: found.bound or 0.0 for found in regrets([one, other], DESIGNS[2], LABELS, [])}
    assert all(both[label] > alone[label] for label in LABELS)


def test_nothing_is_said_before_anything_is_known() -> None:
    found = regrets([_question(1, 3)], DESIGNS[2], LABELS, ["b"])
    assert [one.bound for one in found] == [None, None, None]
    assert good_enough(found, "b", LABELS, 0.5) is None
    assert known_bounds(found) == []


def test_words_round_up() -> None:
    assert bound_text(0.0512) == "5.2 %"
    assert bound_text(0.151) == "16 %"


def test_another_that_is_good_enough_replaces_only_one_that_is_beaten() -> None:
    found = [Regret("none", 0.0512, "bfq", "reads"), Regret("bfq", 0.021, "none", "reads")]
    both, alone = ["none", "bfq"], ["bfq"]
    assert good_enough(found, "none", both, 0.1) == "none"
    assert good_enough(found, "none", both, 0.03) is None
    assert good_enough(found, "none", alone, 0.03) == "bfq"
    assert good_enough(found, None, both, 0.03) == "bfq"
    assert good_enough(found, "none", alone, 0.01) is None


def test_a_differing_control_takes_the_choice_away() -> None:
    workloads = [make_workload("reads"), make_workload("cached", control=True)]
    spec = make_spec(("mq-deadline", "none"), workloads, blocks=8).model_copy(update={"good_enough": 0.5})
    noisy = {name: SchedulerBehaviour(noise=0.03) for name in ("none", "mq-deadline")}
    agreeing, differing = (
        analyse(
            make_experiment(
                spec,
                behaviours=noisy,
                workloads={"cached": WorkloadBehaviour(schedulers={"none": SchedulerBehaviour(speed)})},
            )
        ).verdict
        for speed in (1.0, 0.8)
    )
    assert (agreeing.status, agreeing.choice) == ("undecided", "mq-deadline")
    assert (differing.status, differing.choice) == ("undecided", None)
    assert differing.recommendation is not None and differing.recommendation.action == "withheld"


def _rounds_until_over(race: Race, seed: int) -> tuple[int, str | None]:
    question = _question(seed, 400)
    for number in range(400):
        for label in LABELS:
            race.add_value("reads", label, number, question.values[label][number])
        standings = race.standings(None, rounds_left={"reads": 400 - number})
        if standings.over:
            return number, standings.good_enough
    raise AssertionError("the race did not end")


def test_a_race_ends_once_a_scheduler_is_good_enough() -> None:
    spec = switched_spec(LABELS)
    record = make_experiment(make_spec(blocks=1))
    to_the_end = _rounds_until_over(race_of(record.model_copy(update={"spec": spec})), 3)
    lenient = spec.model_copy(update={"good_enough": 0.06})
    early = _rounds_until_over(race_of(record.model_copy(update={"spec": lenient})), 3)
    assert to_the_end[1] is None
    assert early[1] in ("a", "b")
    assert early[0] < to_the_end[0]
