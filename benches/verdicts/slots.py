"""Simulates switchbacks on noise and decides them with the package's own functions.

`stretch_of` orders the slots, `Race` looks at them after every stretch, chooses the schedulers of the next
one and ends the experiment, `compare_all` and `metric_verdict` decide.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from simulate import METRIC, specification
from slot_families import Floats, SlotFamily

from blklab.analysis.comparison import PairwiseComparison, compare_all
from blklab.analysis.designs import design_of
from blklab.analysis.questions import Question
from blklab.analysis.ranking import metric_verdict
from blklab.analysis.regret import regrets
from blklab.analysis.values import values_begun
from blklab.experiment.racing import Race
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.plan import derive_seed
from blklab.spec.slots import SlotDecision
from blklab.spec.stretches import stretch_of

SLOT_S = 0.1
SLOTS = 600
"""A minute of load."""
STRETCH_SLOTS = 80
"""Slots between two looks: a stretch of eight seconds."""
RUN_SLOTS = 30
"""Slots that take as long as a run of three seconds, for the comparison with runs."""


@dataclass(frozen=True)
class SlotOutcome:
    """The outcome of a switchback. The first scheduler is the better one, if one is."""

    status: str
    best: list[str]
    false_claims: int
    """Pairs of schedulers in which the wrong one was called better."""
    rejected: bool
    """Whether the ratio of the first two was found to differ from the true one at any look."""
    slots: int
    covered: list[bool]
    """For each pair that has an interval: whether the true ratio lies in it."""
    bounded: bool
    """Whether the regret of every scheduler is within its bound."""

    def names(self, label: str) -> bool:
        """Whether it calls this scheduler alone the best."""
        return self.status == "best" and self.best == [label]


def switchbacks(
    family: SlotFamily, labels: Sequence[str], ratio: float, count: int, seed: int
) -> Iterator[SlotOutcome]:
    """Simulated switchbacks in which the first scheduler's slots are `ratio` times the others'."""
    template = specification(labels, settled=True)
    workload = template.workloads[0].name
    decision = SlotDecision(slot_ns=round(1e9 * SLOT_S), reason="simulated")
    template = template.model_copy(update={"slots": {workload: decision}})
    noise, seeds = _drawn(family, labels, ratio, count, seed)
    for number in range(count):
        spec = template.model_copy(update={"seed": seeds + number})
        yield _until_settled(spec, labels, noise[number], ratio)


def runs(family: SlotFamily, ratio: float, count: int, seed: int) -> Iterator[bool]:
    """The same load cut into runs of three seconds in blocks: whether the better of two is found."""
    labels = ("a", "b")
    template = specification(labels, settled=True)
    noise, seeds = _drawn(family, labels, ratio, count, seed)
    for number in range(count):
        spec = template.model_copy(update={"seed": seeds + number})
        design = design_of(spec)
        values: dict[str, dict[int, float]] = {label: {} for label in labels}
        generator = np.random.default_rng([seeds, number])
        for block in range(SLOTS // (RUN_SLOTS * len(labels))):
            for position, arm in enumerate(generator.permutation(len(labels))):
                begin = (block * len(labels) + position) * RUN_SLOTS
                value = float(noise[number][arm, begin : begin + RUN_SLOTS].mean())
                values[labels[arm]][block] = value * (ratio if arm == 0 else 1.0)
        question = Question(spec.workloads[0].name, METRIC, values)
        (pairs,) = compare_all([question], design, labels)
        yield metric_verdict(question, pairs, design, labels).best == ["a"]


def _drawn(
    family: SlotFamily, labels: Sequence[str], ratio: float, count: int, seed: int
) -> tuple[Floats, int]:
    """The noise of every experiment, and the seed of the first one's order."""
    kind = zlib.crc32(family.name.encode())
    generator = np.random.default_rng([seed, kind, len(labels), round(1e6 * ratio)])
    return family.draw(generator, count, SLOTS), derive_seed(seed, family.name, len(labels), str(ratio))


def _until_settled(spec: ExperimentSpec, labels: Sequence[str], noise: Floats, ratio: float) -> SlotOutcome:
    race, workload = Race(design_of(spec), values_begun(spec, None)), spec.workloads[0]
    decision = spec.slots[workload.name]
    values: dict[str, dict[int, float]] = {}
    running = frozenset(labels)
    slot = first_round = number = 0
    while slot + len(running) <= SLOTS:
        rounds = min(STRETCH_SLOTS, SLOTS - slot) // len(running)
        stretch = stretch_of(
            workload,
            spec.schedulers,
            decision,
            seed=spec.seed,
            number=number,
            first_round=first_round,
            rounds=rounds,
            running=running,
        )
        for one in stretch.slots:
            label = one.scheduler.label
            better = label == labels[0]
            value = 1e4 * float(noise[0 if better else 1, slot]) * (ratio if better else 1.0)
            race.add_value(workload.name, label, one.key.block, value)
            values.setdefault(label, {})[one.key.block] = value
            slot += 1
        first_round, number = first_round + rounds, number + 1
        left = (SLOTS - slot) // len(running)
        standings = race.standings(None, rounds_left={workload.name: left})
        if standings.over:
            break
        running = standings.running[workload.name]
    return _judge(spec, labels, values, ratio, slot)


def _judge(
    spec: ExperimentSpec,
    labels: Sequence[str],
    values: dict[str, dict[int, float]],
    ratio: float,
    slots: int,
) -> SlotOutcome:
    design, question = design_of(spec), Question(spec.workloads[0].name, METRIC, values)
    (pairs,) = compare_all([question], design, labels)
    verdict = metric_verdict(question, pairs, design, labels)
    own = design.of(question.workload)
    scaled = {number: value / ratio for number, value in values[labels[0]].items()}
    against_truth = own.difference(scaled, values[labels[1]])
    bounds = {one.label: one.bound for one in regrets([question], design, labels, [])}
    losses = {label: 0.0 if label == labels[0] else ratio - 1 for label in labels}
    return SlotOutcome(
        status=verdict.status,
        best=verdict.best,
        false_claims=sum(_is_false(pair, labels[0], ratio) for pair in pairs),
        rejected=against_truth is not None and against_truth.p_difference < design.level,
        slots=slots,
        covered=[
            pair.ci_low <= _truth(pair, labels[0], ratio) <= pair.ci_high
            for pair in pairs
            if pair.ci_low is not None and pair.ci_high is not None
        ],
        bounded=all(bound is None or losses[label] <= bound for label, bound in bounds.items()),
    )


def _truth(pair: PairwiseComparison, better: str, ratio: float) -> float:
    if pair.first == better:
        return ratio
    return 1 / ratio if pair.second == better else 1.0


def _is_false(pair: PairwiseComparison, better: str, ratio: float) -> bool:
    truth = _truth(pair, better, ratio)
    return (pair.outcome == "better" and truth <= 1) or (pair.outcome == "worse" and truth >= 1)
