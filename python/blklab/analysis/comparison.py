"""Comparing schedulers pair by pair within blocks, and putting that into words.

For each pair under a workload and metric:

* **equal** if two one-sided tests place their ratio within the margin of practical equality;
* **better** (or worse) if the ratio differs from 1 and its estimate lies beyond the margin;
* **undecided** otherwise.

The p values are corrected by Holm's method (those of differences with Shaffer's improvement, since equality
is transitive): over the pairs of the workload, and for the metrics that the workloads decide by also over
the workloads, since those together make the overall verdict. Metrics that do not decide are for the reader's
insight. Fewer than `FEWEST_BLOCKS` blocks decide nothing.

Where the samples themselves decided how many blocks there are, p values and intervals are those of
`blklab.analysis.statistics.anytime`, which allow for that; else those of `blklab.analysis.statistics.paired`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from blklab.analysis.metrics import Metric
from blklab.analysis.statistics.anytime import anytime_difference, anytime_mean_interval, fewest_blocks
from blklab.analysis.statistics.intervals import geometric_mean_interval
from blklab.analysis.statistics.multiplicity import holm, numbers_of_equal_pairs
from blklab.analysis.statistics.noise import block_levels
from blklab.analysis.statistics.paired import PairedDifference, paired_difference
from blklab.analysis.statistics.sample_size import blocks_for_difference, blocks_for_equality
from blklab.analysis.statistics.serial import widening
from blklab.quantities.formatting import metric_title, ratio_text
from blklab.records.samples import RunSample
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.workloads import Workload

Outcome = Literal["better", "worse", "equal", "undecided"]

FEWEST_BLOCKS = 3

OPPOSITE: dict[Outcome, Outcome] = {
    "better": "worse",
    "worse": "better",
    "equal": "equal",
    "undecided": "undecided",
}
"""What an outcome is as seen from the other side."""


@dataclass(frozen=True)
class Result:
    """One scheduler under one workload: geometric mean of a metric over the runs, with its interval."""

    scheduler: str
    workload: str
    metric: str
    unit: str
    n: int
    mean: float
    ci_low: float | None
    ci_high: float | None


@dataclass(frozen=True, kw_only=True)
class JudgedRatio:
    """A ratio of figures within blocks, with its interval, and what it comes to."""

    workload: str
    metric: str
    n: int
    """Blocks that have all of the figures."""
    ratio: float
    ci_low: float | None
    ci_high: float | None
    """Interval of this one ratio at the experiment's confidence."""
    p_adjusted: float
    """Of the difference, corrected for the questions that are asked together."""
    outcome: Outcome


@dataclass(frozen=True, kw_only=True)
class Comparison(JudgedRatio):
    """Two schedulers under one workload and metric, as seen from the first: first over second."""

    first: str
    second: str
    more_blocks: int | None
    """Blocks that an undecided pair would probably take in addition; nothing if decided or hopeless."""

    def seen_from(self, label: str) -> Comparison:
        """The same comparison with `label` first."""
        if label == self.first:
            return self
        return replace(
            self,
            first=self.second,
            second=self.first,
            ratio=1 / self.ratio,
            ci_low=None if self.ci_high is None else 1 / self.ci_high,
            ci_high=None if self.ci_low is None else 1 / self.ci_low,
            outcome=OPPOSITE[self.outcome],
        )


Series = Mapping[str, Mapping[int, float]]
"""Scheduler's label → block → figure."""


def metric_values(
    samples: Sequence[RunSample], workload: Workload, metric: Metric
) -> dict[str, dict[int, float]]:
    """A metric's figure of every successful run of a workload, by scheduler and block."""
    values: dict[str, dict[int, float]] = {}
    for sample in samples:
        if sample.status != "ok" or sample.cell.workload != workload.name:
            continue
        value = metric.compute([job for job in sample.jobs if job.name in workload.focus])
        if value is not None:
            values.setdefault(sample.cell.scheduler, {})[sample.cell.block] = value
    return values


@dataclass(frozen=True)
class Question:
    """One workload and metric, before multiplicity is settled."""

    workload: Workload
    metric: Metric
    decides: bool
    values: Series
    family: int
    """Number of workloads whose questions are corrected together with this one's."""

    @property
    def joint(self) -> bool:
        """Whether it is part of the overall verdict."""
        return self.decides and not self.workload.control


def summarise(
    values: Series, workload: Workload, metric: Metric, spec: ExperimentSpec, labels: Sequence[str]
) -> list[Result]:
    """Each scheduler's mean and interval; figures of zero (a run without I/O) have no logarithm."""
    mean_interval = anytime_mean_interval if spec.stops_when_settled else geometric_mean_interval
    # What the blocks have in common drifts and lingers for all schedulers alike.
    widened_by = widening([mean for _, mean in block_levels(values)])
    results = []
    for label in labels:
        figures = [value for value in values.get(label, {}).values() if value > 0]
        if figures:
            interval = mean_interval(figures, spec.confidence, widened_by=widened_by)
            results.append(
                Result(
                    scheduler=label,
                    workload=workload.name,
                    metric=metric.name,
                    unit=metric.unit,
                    n=interval.n,
                    mean=interval.mean,
                    ci_low=interval.low,
                    ci_high=interval.high,
                )
            )
    return results


@dataclass(frozen=True)
class _Pair:
    first: str
    second: str
    difference: PairedDifference


def compare_all(
    questions: Sequence[Question], spec: ExperimentSpec, labels: Sequence[str]
) -> list[tuple[Question, list[Comparison]]]:
    """Compares all pairs; the deciding questions share one family, every other question is its own."""
    pairs_each = len(labels) * (len(labels) - 1) // 2
    pairs_of = {
        id(question): _pairs(question, spec, labels, max(1, pairs_each * question.family))
        for question in questions
    }
    families = [[question for question in questions if question.joint]]
    families += [[question] for question in questions if not question.joint]
    comparisons: dict[int, list[Comparison]] = {}
    for family in families:
        members = [(question, pair) for question in family for pair in pairs_of[id(question)]]
        different = holm(
            [pair.difference.p_difference for _, pair in members],
            _numbers_possibly_true([pairs_of[id(question)] for question in family]),
        )
        equivalent = holm([pair.difference.p_equivalence for _, pair in members])
        for (question, pair), *p_values in zip(members, different, equivalent, strict=True):
            comparisons.setdefault(id(question), []).append(
                _comparison(question, pair, (p_values[0], p_values[1]), spec, max(1, len(members)))
            )
    return [(question, comparisons.get(id(question), [])) for question in questions]


def _pairs(question: Question, spec: ExperimentSpec, labels: Sequence[str], nr_questions: int) -> list[_Pair]:
    """Differences of all pairs over the blocks in which both have a positive figure."""
    pairs = []
    for first, second in itertools.combinations(labels, 2):
        one, other = question.values.get(first, {}), question.values.get(second, {})
        blocks = sorted(block for block in one.keys() & other.keys() if one[block] > 0 and other[block] > 0)
        if not blocks:
            continue
        figures = [one[block] for block in blocks], [other[block] for block in blocks]
        pairs.append(_Pair(first, second, difference_within_blocks(*figures, spec, nr_questions)))
    return pairs


def difference_within_blocks(
    first: Sequence[float], second: Sequence[float], spec: ExperimentSpec, nr_questions: int
) -> PairedDifference:
    """The difference of two series by the method that the experiment's stopping calls for.

    Args:
        first: One positive figure a block, in the order of the blocks.
        second: The other's figures for the same blocks.
        spec: The experiment.
        nr_questions: How many questions are corrected together with this one.
    """
    level = 1 - spec.confidence
    if spec.stops_when_settled:
        fewest = _fewest(spec, nr_questions)
        return anytime_difference(first, second, margin=spec.margin, fewest=fewest)
    return paired_difference(first, second, margin=spec.margin, smallest_level=level / nr_questions)


def _numbers_possibly_true(pairs: Sequence[Sequence[_Pair]]) -> list[int]:
    """How many of the pairs can be equal at once; nothing is known where some pairs of a question lack."""
    sizes = [len({label for pair in question for label in (pair.first, pair.second)}) for question in pairs]
    complete = all(
        len(question) == size * (size - 1) // 2 for question, size in zip(pairs, sizes, strict=True)
    )
    return numbers_of_equal_pairs(sizes) if complete else []


def judged_ratio(
    workload: str,
    metric: Metric,
    difference: PairedDifference,
    p_values: tuple[float, float],
    spec: ExperimentSpec,
    nr_questions: int,
) -> JudgedRatio:
    """What a difference within blocks comes to.

    Args:
        workload: The workload's name.
        metric: What was compared.
        difference: From `difference_within_blocks`.
        p_values: Of the difference and of equivalence, corrected for multiplicity.
        spec: The experiment.
        nr_questions: How many questions are corrected together with this one.
    """
    level = 1 - spec.confidence
    p_different, p_equivalent = p_values
    outcome: Outcome = "undecided"
    if difference.n >= _fewest(spec, nr_questions):
        if p_equivalent < level:
            outcome = "equal"
        elif p_different < level and abs(difference.log_ratio) > math.log1p(spec.margin):
            higher = difference.log_ratio > 0
            outcome = "better" if higher == (metric.better == "higher") else "worse"
    low, high = difference.ratio_interval(spec.confidence) or (None, None)
    return JudgedRatio(
        workload=workload,
        metric=metric.name,
        n=difference.n,
        ratio=difference.ratio,
        ci_low=low,
        ci_high=high,
        p_adjusted=p_different,
        outcome=outcome,
    )


def _fewest(spec: ExperimentSpec, nr_questions: int) -> int:
    """Blocks before which nothing is decided."""
    return fewest_blocks(nr_questions, 1 - spec.confidence) if spec.stops_when_settled else FEWEST_BLOCKS


def _comparison(
    question: Question, pair: _Pair, p_values: tuple[float, float], spec: ExperimentSpec, nr_questions: int
) -> Comparison:
    judged = judged_ratio(
        question.workload.name, question.metric, pair.difference, p_values, spec, nr_questions
    )
    more = None
    if judged.outcome == "undecided":
        level = (1 - spec.confidence) / nr_questions
        more = _more_blocks(pair.difference, spec, level, _fewest(spec, nr_questions))
    return Comparison(**vars(judged), first=pair.first, second=pair.second, more_blocks=more)


def _more_blocks(difference: PairedDifference, spec: ExperimentSpec, level: float, fewest: int) -> int | None:
    if difference.n < 2:
        return fewest - difference.n
    deviation = difference.standard_error * math.sqrt(difference.n)
    anytime = spec.stops_when_settled
    if abs(difference.log_ratio) > math.log1p(spec.margin):
        needed = blocks_for_difference(difference.log_ratio, deviation, level, anytime=anytime)
    else:
        needed = blocks_for_equality(difference.log_ratio, deviation, level, spec.margin, anytime=anytime)
    return None if needed is None else max(1, fewest - difference.n, needed - difference.n)


def describe_effect(pair: Comparison, metric: Metric) -> str:
    """The first scheduler against the second in words: ``IOPS +12 % [+8, +17] against kyber``."""
    effect = ratio_text(pair.ratio, pair.ci_low, pair.ci_high)
    return f"{metric_title(metric.name)} {effect} against {pair.second}"
