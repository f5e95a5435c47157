"""Simulates fleets of drives with known truth and decides them with the package's own functions.

Every drive has its own true log ratios, and an experiment of its own in randomised blocks. `compare_all` with
`PopulationDesign` and `metric_verdict` decide, as they do for `blklab fleet`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from families import Floats
from simulate import METRIC, settled_values, specification

from blklab.analysis.comparison import compare_all
from blklab.analysis.designs import PopulationDesign, design_of
from blklab.analysis.questions import Question
from blklab.analysis.ranking import metric_verdict
from blklab.analysis.statistics.intervals import t_quantile
from blklab.analysis.statistics.population import DriveEffect, PopulationDifference, population_difference
from blklab.quantities.sample_units import DRIVES
from blklab.spec.budget import DEFAULT_BUDGET_BLOCKS
from blklab.spec.experiment import DEFAULT_CONFIDENCE, DEFAULT_MARGIN

LABELS = ("a", "b", "c", "d")
FIXED_BLOCKS = 6
DESIGN = PopulationDesign(confidence=DEFAULT_CONFIDENCE, margin=DEFAULT_MARGIN)

DriveDraw = Callable[[np.random.Generator, int], Floats]
"""(generator, drives) → deviations of the four schedulers from the class's mean, of variance 1, shape
(drives, 4)."""


@dataclass(frozen=True)
class FleetKind:
    """A kind of fleet; ranges are drawn from evenly, on the log scale for all but the drives."""

    name: str
    meaning: str
    drives: tuple[int, int]
    spread: tuple[float, float]
    """Standard deviation of a pair's true log ratio between drives."""
    scatter: tuple[float, float]
    """Standard deviation of the log of a run, drawn for each drive if the fleet is `uneven`."""
    settled: bool = False
    """Whether each drive's experiment adds blocks until its own question is settled; else six blocks."""
    uneven: bool = False
    deviations: DriveDraw | None = None
    """Other than normal."""


def fleet_kinds() -> list[FleetKind]:
    """All kinds, the one that stands for real fleets first."""
    usual = FleetKind(
        "six blocks", "the same, but six blocks for each drive", (3, 16), (0.01, 0.1), (0.01, 0.05)
    )
    return [
        replace(
            usual,
            name="drawn",
            meaning="3 to 16 drives, spread 1 to 10 %, runs scatter by 1 to 5 %, blocks until settled",
            settled=True,
        ),
        usual,
        replace(usual, name="three drives", meaning="three drives", drives=(3, 3)),
        replace(usual, name="thirty drives", meaning="thirty drives", drives=(30, 30)),
        replace(usual, name="no spread", meaning="drives exactly alike", spread=(1e-9, 1e-9)),
        replace(usual, name="little spread", meaning="spread 0.5 %", spread=(0.005, 0.005)),
        replace(usual, name="large spread", meaning="spread 20 %", spread=(0.2, 0.2)),
        replace(
            usual,
            name="uneven",
            meaning="runs of some drives scatter by 0.5 %, of others by 10 %",
            scatter=(0.005, 0.1),
            uneven=True,
        ),
        replace(
            usual,
            name="heavy tails",
            meaning="drives with Student's t, three degrees of freedom",
            deviations=_student,
        ),
        replace(
            usual,
            name="two firmwares",
            meaning="a third of the drives with one ratio, the rest with another",
            deviations=_two_kinds,
        ),
    ]


@dataclass(frozen=True)
class FleetOutcome:
    """The verdict on a fleet, against the truth."""

    false_winner: bool
    """Names a scheduler the best that is not, or that shares the first place with another."""
    tie: bool
    """Whether the first place is truly shared."""
    found: bool
    """Names the best one."""
    mean_held: list[bool]
    """For each pair: whether the interval holds the class's mean ratio."""
    new_held: list[bool]
    """For each pair: whether the interval for a new drive holds that of a drive drawn afterwards."""
    weighted_rejected: list[bool]
    """For each pair: whether weights by inverse variances (Paule and Mandel; Hartung, Knapp, Sidik, Jonkman)
    would have rejected the true mean ratio at 5 %."""


def fleets(kind: FleetKind, count: int, seed: int) -> Iterator[FleetOutcome]:
    """Simulated fleets, in turn with three truths.

    All schedulers are equal, or two of them share the first place, or one is ahead; ahead of the rest
    by 3 to 15 %.
    """
    place = [one.name for one in fleet_kinds()].index(kind.name)
    for number in range(count):
        generator = np.random.default_rng([seed, place, number])
        yield _fleet(kind, generator, number)


def _fleet(kind: FleetKind, generator: np.random.Generator, number: int) -> FleetOutcome:
    drives = int(generator.integers(kind.drives[0], kind.drives[1] + 1))
    spread = _log_uniform(generator, kind.spread)
    ahead = _log_uniform(generator, (0.03, 0.15))
    truth = np.array([(0.0, 0.0, 0.0, 0.0), (ahead, ahead, 0.0, 0.0), (ahead, 0.0, 0.0, 0.0)][number % 3])
    draw = kind.deviations or _normal
    own = truth + spread / math.sqrt(2) * draw(generator, drives + 1)
    new, measured = own[0], own[1:]
    scatter = _log_uniform(generator, kind.scatter)
    experiments = []
    for one in measured:
        deviation = _log_uniform(generator, kind.scatter) if kind.uneven else scatter
        experiments.append(_experiment(generator, one, deviation, settled=kind.settled))
    return _judge(experiments, truth, new)


def _judge(
    experiments: Sequence[dict[tuple[str, str], DriveEffect]], truth: Floats, new: Floats
) -> FleetOutcome:
    differences: dict[tuple[str, str], PopulationDifference] = {}

    def difference(_: Question, first: str, second: str) -> PopulationDifference:
        effects = [found[first, second] for found in experiments]
        differences[first, second] = population_difference(effects, margin=DEFAULT_MARGIN)
        return differences[first, second]

    # Levels relative to the first scheduler: only their order counts.
    series = {
        label: {
            number: 1.0 if label == LABELS[0] else math.exp(-found[LABELS[0], label].log_ratio)
            for number, found in enumerate(experiments)
        }
        for label in LABELS
    }
    question = Question("noise", METRIC, series, unit=DRIVES)
    (pairs,) = compare_all([question], DESIGN, LABELS, difference)
    verdict = metric_verdict(question, pairs, DESIGN, LABELS)
    best = {LABELS[place] for place in np.flatnonzero(truth == truth.max())}
    named = set(verdict.best) if verdict.status == "best" else set()
    true_means = {pair: _difference_of(truth, pair) for pair in differences}
    return FleetOutcome(
        false_winner=bool(named) and named != best,
        tie=len(best) > 1,
        found=named == best,
        mean_held=[
            _holds(one.log_interval(DEFAULT_CONFIDENCE), true_means[pair])
            for pair, one in differences.items()
        ],
        new_held=[
            _holds(one.prediction(DEFAULT_CONFIDENCE), _difference_of(new, pair))
            for pair, one in differences.items()
        ],
        weighted_rejected=[
            weighted_rejects([found[pair] for found in experiments], true_means[pair]) for pair in differences
        ],
    )


def weighted_rejects(effects: Sequence[DriveEffect], mean: float) -> bool:
    """The usual random-effects test of a mean.

    The variance between drives is Paule and Mandel's, the test that of Hartung, Knapp, Sidik and Jonkman.
    """
    values = np.array([one.log_ratio for one in effects])
    variances = np.array([one.standard_error for one in effects]) ** 2
    freedom = len(values) - 1

    def excess(between: float) -> float:
        weights = 1 / (variances + between)
        center = (weights @ values) / weights.sum()
        return float(weights @ (values - center) ** 2) - freedom

    low, high = 0.0, float(values.var()) * (freedom + 1) + float(variances.max())
    if excess(0.0) > 0:
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    weights = 1 / (variances + low)
    center = (weights @ values) / weights.sum()
    error = math.sqrt((weights @ (values - center) ** 2) / freedom / weights.sum())
    return abs(center - mean) > t_quantile(1 - DESIGN.level / 2, freedom) * error


def _experiment(
    generator: np.random.Generator, truth: Floats, scatter: float, *, settled: bool
) -> dict[tuple[str, str], DriveEffect]:
    """The drive's own ratios with their standard errors."""
    spec = specification(LABELS, settled=settled)
    pairs = list(itertools.combinations(LABELS, 2))
    if not settled:
        logs = truth + generator.normal(0, scatter, (FIXED_BLOCKS, len(LABELS)))
        found = {}
        for first, second in pairs:
            ratios = logs[:, LABELS.index(first)] - logs[:, LABELS.index(second)]
            error = float(ratios.std(ddof=1)) / math.sqrt(FIXED_BLOCKS)
            found[first, second] = DriveEffect(float(ratios.mean()), error)
        return found
    spec = spec.model_copy(update={"seed": int(generator.integers(1 << 40))})
    noise = generator.normal(0, scatter, DEFAULT_BUDGET_BLOCKS * len(LABELS))

    def value(label: str, sequence: int) -> float:
        return 10_000 * math.exp(truth[LABELS.index(label)] + noise[sequence])

    values, _ = settled_values(spec, LABELS, value)
    design = design_of(spec)
    differences = {(one, other): design.difference(values[one], values[other]) for one, other in pairs}
    return {
        pair: DriveEffect(found.log_ratio, found.standard_error)
        for pair, found in differences.items()
        if found is not None
    }


def _log_uniform(generator: np.random.Generator, bounds: tuple[float, float]) -> float:
    return math.exp(generator.uniform(math.log(bounds[0]), math.log(bounds[1])))


def _difference_of(logs: Floats, pair: tuple[str, str]) -> float:
    return float(logs[LABELS.index(pair[0])] - logs[LABELS.index(pair[1])])


def _holds(interval: tuple[float, float] | None, value: float) -> bool:
    # Drives that are exactly alike have the same ratio up to rounding.
    return interval is not None and interval[0] - 1e-12 <= value <= interval[1] + 1e-12


def _normal(generator: np.random.Generator, drives: int) -> Floats:
    return generator.normal(0, 1, (drives, len(LABELS)))


def _student(generator: np.random.Generator, drives: int) -> Floats:
    return generator.standard_t(3, (drives, len(LABELS))) / math.sqrt(3)


def _two_kinds(generator: np.random.Generator, drives: int) -> Floats:
    """Two levels, a third of the drives at the one, with mean 0 and variance 1."""
    level = np.where(generator.random((drives, 1)) < 1 / 3, math.sqrt(2), -1 / math.sqrt(2))
    return level * np.array([1.0, -1.0, 1.0, -1.0]) / math.sqrt(2)
