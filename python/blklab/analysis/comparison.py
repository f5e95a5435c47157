"""Schedulers compared pair by pair within blocks.

The questions that decide the workloads make up one family, because together they make the overall verdict;
every other question is a family of its own. Within a family the p values of differences are corrected with
Shaffer's improvement of Holm's method, since equality is transitive.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from blklab.analysis.designs import Design
from blklab.analysis.questions import Question
from blklab.analysis.ratios import OPPOSITE, Contrast, RatioEstimate, estimate_family
from blklab.analysis.statistics.difference import Difference
from blklab.analysis.statistics.multiplicity import numbers_of_equal_pairs
from blklab.quantities.ratios import reciprocal_interval


@dataclass(frozen=True, kw_only=True)
class PairwiseComparison(RatioEstimate):
    """Two schedulers under one workload and metric, seen from the first: first over second."""

    first: str
    second: str
    more_blocks: int | None
    """Blocks or rounds that an undecided pair would probably take in addition; None if decided or
    hopeless."""
    least_more_blocks: int | None = None
    """Those that it would take if the estimate is off in the way that helps, likewise."""
    samples_per_value: int = 1
    """Blocks or rounds that each of the `n` values covers."""

    def seen_from(self, label: str) -> PairwiseComparison:
        """The same comparison with `label` first."""
        if label == self.first:
            return self
        low, high = reciprocal_interval(self.ci_low, self.ci_high)
        return replace(
            self,
            first=self.second,
            second=self.first,
            ratio=1 / self.ratio,
            ci_low=low,
            ci_high=high,
            outcome=OPPOSITE[self.outcome],
        )


DifferenceOf = Callable[[Question, str, str], Difference | None]
"""Gives the difference of two schedulers under a question; None if they share no sample."""


@dataclass(frozen=True)
class _Pair:
    question: int
    """Its place among the questions."""
    first: str
    second: str
    difference: Difference


def compare_all(
    questions: Sequence[Question],
    design: Design,
    labels: Sequence[str],
    difference_of: DifferenceOf | None = None,
) -> list[list[PairwiseComparison]]:
    """Compares all pairs of schedulers.

    Args:
        questions: All that are asked; families are formed among them.
        design: The experiment's.
        labels: All schedulers.
        difference_of: Gives differences that do not follow from the questions' values; by default the
            design makes them.

    Returns:
        For each question its comparisons, in the order of the questions.
    """
    families: dict[tuple[str | None, int], list[_Pair]] = {}
    for place, question in enumerate(questions):
        family = (question.family, -1 if question.family is not None else place)
        families.setdefault(family, []).extend(_pairs(place, question, design, labels, difference_of))
    compared: list[list[PairwiseComparison]] = [[] for _ in questions]
    for pairs in families.values():
        for pair, comparison in zip(pairs, _compare_family(pairs, questions, design), strict=True):
            compared[pair.question].append(comparison)
    return compared


def _pairs(
    place: int,
    question: Question,
    design: Design,
    labels: Sequence[str],
    difference_of: DifferenceOf | None,
) -> list[_Pair]:
    """Differences of all pairs that share a sample."""
    own = design.of(question.workload)
    asked = own.asking(max(1, math.comb(len(labels), 2) * question.family_size))

    def of_values(question: Question, first: str, second: str) -> Difference | None:
        return asked.difference(question.values.get(first, {}), question.values.get(second, {}))

    find = difference_of or of_values
    return [
        _Pair(place, first, second, difference)
        for first, second in itertools.combinations(labels, 2)
        if (difference := find(question, first, second)) is not None
    ]


def _compare_family(
    pairs: Sequence[_Pair], questions: Sequence[Question], design: Design
) -> list[PairwiseComparison]:
    contrasts = [
        Contrast(questions[pair.question].workload, questions[pair.question].metric, pair.difference)
        for pair in pairs
    ]
    asked = design.asking(max(1, len(pairs)))
    estimates = estimate_family(contrasts, asked, _numbers_possibly_true(pairs))

    def comparison(pair: _Pair, estimate: RatioEstimate) -> PairwiseComparison:
        question = questions[pair.question]
        own = asked.of(question.workload)
        still_open = estimate.outcome == "undecided"
        return PairwiseComparison(
            **vars(estimate),
            first=pair.first,
            second=pair.second,
            more_blocks=_more_blocks(question, pair.difference, own) if still_open else None,
            least_more_blocks=_more_blocks(question, pair.difference, own, at_least=True)
            if still_open
            else None,
            samples_per_value=question.samples_per_value,
        )

    return [comparison(pair, estimate) for pair, estimate in zip(pairs, estimates, strict=True)]


def _more_blocks(
    question: Question, difference: Difference, design: Design, *, at_least: bool = False
) -> int | None:
    more = design.more_samples(difference, at_least=at_least)
    return None if more is None else more * question.samples_per_value


def _numbers_possibly_true(pairs: Sequence[_Pair]) -> list[int]:
    """The possible numbers of equal pairs; empty, meaning any number, if a question lacks pairs."""
    by_question: dict[int, list[_Pair]] = {}
    for pair in pairs:
        by_question.setdefault(pair.question, []).append(pair)
    sizes = [
        len({label for pair in own for label in (pair.first, pair.second)}) for own in by_question.values()
    ]
    complete = all(
        len(own) == math.comb(size, 2) for own, size in zip(by_question.values(), sizes, strict=True)
    )
    return numbers_of_equal_pairs(sizes) if complete else []
