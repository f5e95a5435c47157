"""The first place under a workload, by one metric.

A scheduler that another one beats is out of the race. Of those left, the one with the best mean leads. It is
the best if no other is left; rivals that are equal to it share its place. As long as a rival is left that is
neither, the workload is undecided and no winner is named.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from blklab.analysis.comparison import PairwiseComparison
from blklab.analysis.designs import Design
from blklab.analysis.designs.fixed import FEWEST_BLOCKS
from blklab.analysis.questions import Question
from blklab.analysis.regret import Regret
from blklab.analysis.statistics.sample_size import MoreSamples, range_of_more
from blklab.quantities.sample_units import SampleUnit

Status = Literal["best", "equal", "undecided"]

NeedKind = Literal["too_few", "hopeless", "not_worth_it", "within_reach"]
"""``too_few``: there are fewer samples than any verdict needs. ``hopeless``: more are unlikely to tell the
schedulers apart. ``not_worth_it``: it would take many times as many. ``within_reach``: a known number would
probably decide."""


@dataclass(frozen=True)
class SamplesNeeded:
    """The number of blocks or rounds that would decide an open question."""

    kind: NeedKind
    unit: SampleUnit
    fewest: int
    """Samples without which nothing can be decided."""
    more: MoreSamples | None
    """None if it cannot be told."""
    nr_contenders: int


@dataclass(frozen=True)
class NoFigures:
    """Undecided: some schedulers have no figure at all."""

    schedulers: Sequence[str]


@dataclass(frozen=True)
class NoSharedSample:
    """Undecided: each scheduler has figures, but no block has those of all."""

    unit: SampleUnit


@dataclass(frozen=True)
class Contested:
    """Undecided: several schedulers may be the best."""

    candidates: Sequence[str]
    nearest: PairwiseComparison
    """Of the open pairs, the leader against the one that is closest."""
    beaten: Sequence[PairwiseComparison]
    """One for each scheduler that is out of the race, seen from the one that beats it by most."""
    outlook: SamplesNeeded | None
    """None if the question is not what blocks are added for."""


@dataclass(frozen=True)
class Shared:
    """Several schedulers are equal."""

    schedulers: Sequence[str]
    behind: Sequence[str]
    """Those that they are ahead of."""
    margin: float
    """Within which they are equal."""


@dataclass(frozen=True)
class Won:
    """One scheduler is the best."""

    pair: PairwiseComparison
    """The winner against the next best."""


FirstPlace = NoFigures | NoSharedSample | Contested | Shared | Won
"""The finding on one question."""


@dataclass(frozen=True)
class MetricVerdict:
    """The verdict of one metric on one workload."""

    workload: str
    metric: str
    decides: bool
    """Whether the workload's verdict rests on this metric."""
    control: bool
    status: Status
    best: list[str]
    """The winner, or those that share the first place; empty while undecided."""
    candidates: list[str]
    """Those that are not ruled out yet."""
    place: FirstPlace
    more_blocks: int | None
    more_range: MoreSamples | None = None
    """The range of `more_blocks`."""
    regret: list[Regret] = field(default_factory=list)
    """Of an open question, where several workloads are judged: the bounds under this workload alone."""


def metric_verdict(
    question: Question,
    pairs: Sequence[PairwiseComparison],
    design: Design,
    labels: Sequence[str],
    *,
    outlook: bool = True,
) -> MetricVerdict:
    """The first place and who shares it.

    Args:
        question: A metric of a workload.
        pairs: Its comparisons.
        design: The experiment's.
        labels: All schedulers.
        outlook: Whether to say how many blocks or rounds an open question would take.
    """
    metric = question.metric

    def verdict(
        status: Status,
        best: list[str],
        candidates: list[str],
        place: FirstPlace,
        more: int | None = None,
        more_range: MoreSamples | None = None,
    ) -> MetricVerdict:
        return MetricVerdict(
            workload=question.workload,
            metric=metric.name,
            decides=question.decides,
            control=question.control,
            status=status,
            best=best,
            candidates=candidates,
            place=place,
            more_blocks=more,
            more_range=more_range,
        )

    centers = design.of(question.workload).means(question.values)
    missing = [label for label in labels if label not in centers]
    if missing:
        return verdict("undecided", [], list(labels), NoFigures(missing))
    means = {label: centers[label].mean for label in labels}
    sign = 1 if metric.better == "higher" else -1
    contenders = in_the_race(pairs, labels)
    leader = max(contenders, key=lambda label: sign * means[label])
    rivals = [pair.seen_from(leader) for pair in pairs if leader in (pair.first, pair.second)]
    if len(rivals) < len(labels) - 1:
        return verdict("undecided", [], list(labels), NoSharedSample(question.unit))
    among = [pair for pair in rivals if pair.second in contenders]
    unsettled = [pair for pair in among if pair.outcome in ("undecided", "worse")]
    sharing = [pair.second for pair in among if pair.outcome == "equal"]
    # Not every rival lost to the leader itself: those that did come first.
    beaten = sorted(
        (pair for pair in rivals if pair.second not in contenders),
        key=lambda pair: (pair.outcome != "better", -sign * means[pair.second]),
    )
    if unsettled:
        candidates = [leader, *sharing, *(pair.second for pair in unsettled)]
        more = longest_need(pair.more_blocks for pair in unsettled)
        asked = design.of(question.workload).asking(max(1, len(pairs) * question.family_size))
        fewest = asked.fewest_samples
        more_range = _range_of(unsettled, more, fewest)
        place = Contested(
            candidates,
            min(unsettled, key=lambda pair: abs(math.log(pair.ratio))),
            _strongest_wins(pairs, contenders),
            _outlook(unsettled, more_range, question.unit, len(contenders), fewest) if outlook else None,
        )
        return verdict("undecided", [], candidates, place, more, more_range)
    first_place = [label for label in labels if label == leader or label in sharing]
    if sharing or not beaten:
        behind = [pair.second for pair in beaten]
        return verdict("equal", first_place, first_place, Shared(first_place, behind, design.margin))
    return verdict("best", [leader], [leader], Won(beaten[0]))


def in_the_race(pairs: Sequence[PairwiseComparison], labels: Sequence[str]) -> list[str]:
    """Schedulers that no other one beats; all of them if the claims contradict each other in a circle."""
    out = {pair.second for pair in pairs if pair.outcome == "better"}
    out |= {pair.first for pair in pairs if pair.outcome == "worse"}
    return [label for label in labels if label not in out] or list(labels)


def _strongest_wins(
    pairs: Sequence[PairwiseComparison], contenders: Sequence[str]
) -> list[PairwiseComparison]:
    """Those that are out, each seen from the contender (or else another one) that beats it by most."""
    seen = [pair.seen_from(label) for pair in pairs for label in (pair.first, pair.second)]
    by_loser: dict[str, list[PairwiseComparison]] = {}
    for pair in seen:
        if pair.outcome == "better" and pair.second not in contenders:
            by_loser.setdefault(pair.second, []).append(pair)
    return [
        max(found, key=lambda pair: (pair.first in contenders, abs(math.log(pair.ratio))))
        for found in by_loser.values()
    ]


def _range_of(unsettled: Sequence[PairwiseComparison], more: int | None, fewest: int) -> MoreSamples | None:
    """The range of the longest need."""
    longest = next((pair for pair in unsettled if pair.more_blocks == more), None)
    if more is None or longest is None:
        return None
    missing = (fewest - longest.n) * longest.samples_per_value
    return range_of_more(more, longest.n * longest.samples_per_value, missing)


def _outlook(
    unsettled: Sequence[PairwiseComparison],
    more: MoreSamples | None,
    unit: SampleUnit,
    nr_contenders: int,
    fewest: int,
) -> SamplesNeeded:
    """The number of blocks or rounds that a decision would take."""
    kind: NeedKind = "within_reach"
    if unsettled[0].n < FEWEST_BLOCKS:
        kind = "too_few"
    elif more is None or not unit.within_reach(more.least, nr_contenders):
        kind = "hopeless"
    elif not more.is_worth_it:
        kind = "not_worth_it"
    return SamplesNeeded(kind, unit, max(FEWEST_BLOCKS, fewest), more, nr_contenders)


def longest_need(needs: Iterable[int | None]) -> int | None:
    """Blocks until the slowest question is settled; None if one of them is hopeless."""
    longest = 0
    for need in needs:
        if need is None:
            return None
        longest = max(longest, need)
    return longest
