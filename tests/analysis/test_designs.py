"""Designs behind one protocol: the limits of each, and the values that it gets from an experiment."""

from __future__ import annotations

import numpy as np
import pytest

from blklab.analysis.comparison import compare_all
from blklab.analysis.designs import AnytimeDesign, Design, FixedDesign, SwitchbackDesign, design_of
from blklab.analysis.designs.fixed import FEWEST_BLOCKS
from blklab.analysis.metrics import METRICS, metric_named
from blklab.analysis.questions import Question, deciding_questions, workload_questions
from blklab.analysis.statistics.anytime import fewest_blocks
from blklab.analysis.values import experiment_values, metric_values, values_begun
from blklab.spec.slots import SlotDecision
from blklab.testing.experiments import make_experiment, make_spec, make_workload

DESIGNS: list[Design] = [
    FixedDesign(confidence=0.95, margin=0.02),
    AnytimeDesign(confidence=0.95, margin=0.02),
]
STEADY = dict(enumerate([1.0, 1.01, 0.99, 1.02, 0.98, 1.0, 1.01, 0.99]))


def test_the_stopping_rule_chooses_the_design() -> None:
    spec = make_spec(blocks=6)
    assert design_of(spec) == FixedDesign(confidence=spec.confidence, margin=spec.margin)
    settled = spec.model_copy(update={"stopping": "settled", "blocks": None, "confidence": 0.9})
    assert design_of(settled) == AnytimeDesign(confidence=0.9, margin=spec.margin)


@pytest.mark.parametrize("design", DESIGNS)
def test_more_questions_ask_for_more(design: Design) -> None:
    many = design.asking(60)
    assert (design.nr_questions, many.nr_questions) == (1, 60)
    assert (many.level, many.margin) == (design.level, design.margin)
    assert many.fewest_samples >= design.fewest_samples >= FEWEST_BLOCKS
    halves = {block: value / 1.1 for block, value in STEADY.items()}
    noisy = {block: value * (1.15 if block % 2 else 0.9) for block, value in halves.items()}
    difference = design.difference(STEADY, noisy)
    assert difference is not None
    needed, needed_by_many = design.more_samples(difference), many.more_samples(difference)
    assert needed is not None and needed_by_many is not None
    assert needed_by_many > needed


def test_only_the_anytime_design_waits_longer_with_more_questions() -> None:
    fixed, anytime = (design.asking(60).fewest_samples for design in DESIGNS)
    assert fixed == FEWEST_BLOCKS
    assert anytime == fewest_blocks(60, DESIGNS[1].level) > fewest_blocks(1, DESIGNS[1].level)


@pytest.mark.parametrize("design", DESIGNS)
def test_values_are_paired_by_block_and_zeros_are_left_out(design: Design) -> None:
    assert design.difference({0: 1.0, 1: 2.0}, {2: 1.0}) is None
    assert design.difference({0: 0.0}, {0: 1.0}) is None
    found = design.difference({0: 2.0, 1: 0.0, 2: 4.0, 4: 9.0}, {3: 1.0, 2: 2.0, 1: 1.0, 0: 1.0})
    assert found is not None
    assert found.n == 2
    assert found.ratio == pytest.approx(2)


@pytest.mark.parametrize("design", DESIGNS)
def test_means_of_schedulers_without_a_positive_value_are_left_out(design: Design) -> None:
    assert design.means({}) == {}
    assert design.means({"none": {0: 0.0}}) == {}
    means = design.means({"none": STEADY, "bfq": {0: 4.0}, "kyber": {}})
    assert list(means) == ["none", "bfq"]
    assert (means["bfq"].n, means["bfq"].low) == (1, None)
    assert means["bfq"].mean == pytest.approx(4)
    low, high = means["none"].low, means["none"].high
    assert low is not None and high is not None
    assert low < 1 < high


def test_values_added_run_by_run_are_those_of_the_record() -> None:
    spec = make_spec(("none", "bfq"), [make_workload("reads"), make_workload("log", syncs=True)], blocks=3)
    record = make_experiment(spec, failures=[(1, "log", "bfq")])
    values = values_begun(spec, record.target.default_scheduler)
    for sample in record.samples:
        values.add(sample)
    assert values.series == experiment_values(record).series
    for workload in spec.workloads:
        for metric in METRICS.values():
            expected = metric_values(record.samples, workload, metric)
            assert values.series[workload.name, metric.name] == expected
    assert 1 not in values.series["log", "iops"]["bfq"]
    assert (values.in_force, values.reference) == ([], "none")


def test_deciding_questions_of_judged_workloads_are_one_family() -> None:
    spec = make_spec(workloads=[make_workload("a"), make_workload("b"), make_workload("c", control=True)])
    values = experiment_values(make_experiment(spec))
    deciding = deciding_questions(values)
    assert [(question.workload, question.family_size) for question in deciding] == [("a", 2), ("b", 2)]
    assert len({question.family for question in deciding}) == 1
    others = [question for question in workload_questions(values) if question not in deciding]
    assert {question.family for question in others} == {None}


def test_families_are_corrected_apart() -> None:
    """A separate question gets the same p values, whichever others are asked."""
    metric = metric_named("iops")
    values = {"a": STEADY, "b": {block: value * (1.01 + block / 200) for block, value in STEADY.items()}}
    alone = Question("one", metric, values)
    joint = [Question(name, metric, values, family="both", family_size=2) for name in ("two", "three")]
    design = DESIGNS[0]
    ((by_itself,),) = compare_all([alone], design, ["a", "b"])
    (beside,), (second,), (third,) = compare_all([alone, *joint], design, ["a", "b"])
    assert beside == by_itself
    assert second.p_adjusted == third.p_adjusted > by_itself.p_adjusted


def test_workloads_have_the_design_that_their_samples_need() -> None:
    spec = make_spec(
        workloads=[make_workload("reads"), make_workload("log"), make_workload("c", control=True)]
    )
    spec = spec.model_copy(update={"stopping": "settled", "blocks": None})
    slots = SlotDecision(slot_ns=250_000_000, reason="made up")

    def designs(*switched: str) -> list[type]:
        design = design_of(spec.model_copy(update={"slots": dict.fromkeys(switched, slots)}))
        return [type(design.of(name)) for name in ("reads", "log", "c", "all workloads")]

    assert designs() == [AnytimeDesign] * 4
    assert designs("reads") == [SwitchbackDesign, AnytimeDesign, AnytimeDesign, AnytimeDesign]
    assert designs("reads", "log") == [SwitchbackDesign, SwitchbackDesign, AnytimeDesign, SwitchbackDesign]
    decided_for_runs = spec.model_copy(update={"slots": {"reads": SlotDecision(reason="it syncs")}})
    assert design_of(decided_for_runs) == design_of(spec)


def test_mixed_designs_ask_each_as_many_questions() -> None:
    spec = make_spec(workloads=[make_workload("reads"), make_workload("log")])
    slots = {"reads": SlotDecision(slot_ns=250_000_000, reason="made up")}
    design = design_of(spec.model_copy(update={"stopping": "settled", "blocks": None, "slots": slots}))
    asked = design.asking(12)
    assert {asked.of(name).nr_questions for name in ("reads", "log", "both")} == {12}
    assert (asked.level, asked.margin, asked.confidence) == (design.level, design.margin, design.confidence)
    assert asked.fewest_samples == asked.of("log").fewest_samples > design.of("log").fewest_samples


def test_a_switchback_pairs_by_round_counts_zeros_and_means_arithmetically() -> None:
    design = SwitchbackDesign(confidence=0.95, margin=0.02)
    assert design.difference({0: 1.0, 1: 2.0}, {2: 1.0}) is None
    found = design.difference({0: 2.0, 1: 0.0, 2: 4.0, 4: 9.0}, {3: 1.0, 2: 2.0, 1: 1.0, 0: 1.0})
    assert found is not None
    assert found.n == 3
    assert found.ratio == pytest.approx(1.5)
    means = design.means({"a": {0: 0.0, 1: 4.0}, "b": {0: 0.0}, "c": STEADY})
    assert list(means) == ["a", "c"]
    assert (means["a"].mean, means["a"].low) == (2.0, None)
    low, high = means["c"].low, means["c"].high
    assert low is not None and high is not None
    assert low < 1 < high


def test_a_switchback_is_not_given_up_as_long_as_luck_would_settle_it() -> None:
    design = SwitchbackDesign(confidence=0.95, margin=0.02)
    generator = np.random.default_rng(1)
    first, second = (dict(enumerate(generator.lognormal(0, 0.06, 24).tolist())) for _ in range(2))
    difference = design.difference(first, second)
    assert difference is not None
    needed, least = design.more_samples(difference), design.more_samples(difference, at_least=True)
    assert least is not None
    assert needed is None or least < needed
    nothing_yet = design.difference({0: 1.0}, {0: 2.0})
    assert nothing_yet is not None
    assert design.more_samples(nothing_yet) == design.fewest_samples - 1
