"""Simulates whole experiments on noise and decides them with the package's own functions.

`Plan` orders the runs, `Race` chooses the schedulers of the next block and ends the experiment,
`compare_all` and `metric_verdict` decide.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from families import Family, Floats

from blklab.analysis.comparison import PairwiseComparison, compare_all
from blklab.analysis.designs import design_of
from blklab.analysis.metrics import metric_named
from blklab.analysis.questions import Question
from blklab.analysis.ranking import MetricVerdict, metric_verdict
from blklab.analysis.statistics.anytime import fewest_blocks
from blklab.analysis.values import values_begun
from blklab.experiment.racing import Race
from blklab.spec.budget import DEFAULT_BUDGET_BLOCKS
from blklab.spec.experiment import DEFAULT_CONFIDENCE, ExperimentSpec
from blklab.spec.plan import Plan, derive_seed
from blklab.testing.experiments import make_spec, make_workload

FIXED_BLOCKS = 15
FOLKLORE_RUNS = 3
FIRST_LOOK = fewest_blocks(1, 1 - DEFAULT_CONFIDENCE)
"""Number of blocks before which no verdict is possible and every scheduler runs."""
METRIC = metric_named("iops")


@dataclass(frozen=True)
class Outcome:
    """The outcome of an experiment. The first scheduler is the better one, if one is."""

    status: str
    best: list[str]
    false_claims: int
    """Pairs of schedulers in which the wrong one was called better."""
    runs: int
    blocks: int
    covered: list[bool]
    """For each pair that has an interval: whether the true ratio lies in it."""

    def names(self, label: str) -> bool:
        """Whether it calls this scheduler alone the best."""
        return self.status == "best" and self.best == [label]


def specification(labels: Sequence[str], *, settled: bool) -> ExperimentSpec:
    """An experiment with one workload, decided by IOPS."""
    spec = make_spec([f"{label}=none" for label in labels], [make_workload("noise")], blocks=FIXED_BLOCKS)
    if not settled:
        return spec
    return spec.model_copy(
        update={"stopping": "settled", "blocks": None, "budget_blocks": DEFAULT_BUDGET_BLOCKS}
    )


def experiments(
    family: Family, labels: Sequence[str], ratio: float, count: int, seed: int, *, settled: bool
) -> Iterator[Outcome]:
    """Simulated experiments in which the first scheduler's values are `ratio` times the others'."""
    template = specification(labels, settled=settled)
    blocks = DEFAULT_BUDGET_BLOCKS
    # Orders and noise of their own for every kind of noise, so that luck is not the same in all of them.
    kind = zlib.crc32(family.name.encode())
    generator = np.random.default_rng([seed, kind, len(labels), round(1e6 * ratio)])
    plans = derive_seed(seed, family.name, len(labels), str(ratio))
    noise = family.draw(generator, count, blocks, len(labels))
    carry_out = _until_settled if settled else _fixed
    for number in range(count):
        spec = template.model_copy(update={"seed": plans + number})
        yield carry_out(spec, labels, noise[number], math.log(ratio))


def _until_settled(spec: ExperimentSpec, labels: Sequence[str], noise: Floats, effect: float) -> Outcome:
    def value(label: str, sequence: int) -> float:
        return _value(noise[sequence], label == labels[0], effect)

    values, runs = settled_values(spec, labels, value)
    return _judge(spec, labels, values, effect, runs)


def settled_values(
    spec: ExperimentSpec, labels: Sequence[str], value: Callable[[str, int], float]
) -> tuple[dict[str, dict[int, float]], int]:
    """Carries out an experiment that adds blocks until its question is settled.

    Args:
        spec: The experiment, with one workload.
        labels: All schedulers.
        value: Gives the value of a run, by its scheduler and its place in the sequence of runs.

    Returns:
        The values by scheduler and block, and the number of runs.
    """
    plan, race = Plan(spec), Race(design_of(spec), values_begun(spec, None))
    workload = spec.workloads[0].name
    values: dict[str, dict[int, float]] = {}
    runs = 0
    number = 0
    running = frozenset(labels)
    while number < DEFAULT_BUDGET_BLOCKS:
        if number >= FIRST_LOOK:
            standings = race.standings(DEFAULT_BUDGET_BLOCKS - number)
            if standings.over:
                break
            running = standings.running[workload]
        for cell in plan.block(number):
            label = cell.key.scheduler
            if label in running:
                found = value(label, cell.key.sequence)
                race.add_value(workload, label, number, found)
                values.setdefault(label, {})[number] = found
                runs += 1
        number += 1
    return values, runs


def _fixed(spec: ExperimentSpec, labels: Sequence[str], noise: Floats, effect: float) -> Outcome:
    values: dict[str, dict[int, float]] = {}
    for block in Plan(spec).blocks():
        for cell in block:
            label = cell.key.scheduler
            values.setdefault(label, {})[cell.key.block] = _value(
                noise[cell.key.sequence], label == labels[0], effect
            )
    return _judge(spec, labels, values, effect, FIXED_BLOCKS * len(labels))


def _value(noise: float, better: bool, effect: float) -> float:
    return 10_000 * math.exp(noise + (effect if better else 0.0))


def _judge(
    spec: ExperimentSpec,
    labels: Sequence[str],
    values: dict[str, dict[int, float]],
    effect: float,
    runs: int,
) -> Outcome:
    design, question = design_of(spec), Question(spec.workloads[0].name, METRIC, values)
    (pairs,) = compare_all([question], design, labels)
    verdict: MetricVerdict = metric_verdict(question, pairs, design, labels)
    return Outcome(
        status=verdict.status,
        best=verdict.best,
        false_claims=sum(_is_false(pair, labels[0], effect) for pair in pairs),
        runs=runs,
        blocks=max(len(figures) for figures in values.values()),
        covered=[
            pair.ci_low <= _truth(pair, labels[0], effect) <= pair.ci_high
            for pair in pairs
            if pair.ci_low is not None and pair.ci_high is not None
        ],
    )


def _truth(pair: PairwiseComparison, better: str, effect: float) -> float:
    if pair.first == better:
        return math.exp(effect)
    return math.exp(-effect) if pair.second == better else 1.0


def _is_false(pair: PairwiseComparison, better: str, effect: float) -> bool:
    truth = _truth(pair, better, effect)
    return (pair.outcome == "better" and truth <= 1) or (pair.outcome == "worse" and truth >= 1)


@dataclass(frozen=True)
class Folklore:
    """The usual procedure: three runs of each in fixed order, the highest mean wins."""

    first_wins: float
    """Share of experiments that call the first scheduler the best."""
    claimed: float
    """Share in which the winner's mean leads by more than the margin."""


def folklore(family: Family, ratio: float, count: int, seed: int, margin: float) -> Folklore:
    """Two schedulers, all runs of the first before those of the second; the second is the better one.

    The better one comes last, as a new scheduler does when it is compared with the one in force.
    """
    generator = np.random.default_rng([seed, zlib.crc32(family.name.encode()), 77, round(1e6 * ratio)])
    noise = family.draw(generator, count, FOLKLORE_RUNS, 2)
    first = np.exp(noise[:, :FOLKLORE_RUNS]).mean(axis=1)
    second = np.exp(noise[:, FOLKLORE_RUNS:]).mean(axis=1) * ratio
    ahead = np.maximum(first, second) / np.minimum(first, second)
    return Folklore(float(np.mean(first > second)), float(np.mean(ahead > 1 + margin)))
