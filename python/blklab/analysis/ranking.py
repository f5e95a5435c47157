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

from blklab.analysis.comparison import Comparison
from blklab.analysis.designs import Design
from blklab.analysis.designs.fixed import FEWEST_BLOCKS
from blklab.analysis.questions import Question
from blklab.analysis.regret import Regret
from blklab.analysis.statistics.sample_size import MOST_TIMES_AS_MANY, MoreSamples, range_of_more
from blklab.quantities.formatting import join_schedulers, margin_text, scheduler_text
from blklab.quantities.sample_units import SampleUnit

Status = Literal["best", "equal", "undecided"]


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
    text: str
    more_blocks: int | None
    more_range: MoreSamples | None = None
    """The range of `more_blocks`."""
    regret: list[Regret] = field(default_factory=list)
    """Of an open question, where several workloads are judged: the bounds under this workload alone."""


def metric_verdict(
    question: Question,
    pairs: Sequence[Comparison],
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
        text: str,
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
            text=text,
            more_blocks=more,
            more_range=more_range,
        )

    centers = design.of(question.workload).means(question.values)
    missing = [label for label in labels if label not in centers]
    if missing:
        return verdict("undecided", [], list(labels), f"undecided: no figure for {join_schedulers(missing)}")
    means = {label: centers[label].mean for label in labels}
    sign = 1 if metric.better == "higher" else -1
    contenders = in_the_race(pairs, labels)
    leader = max(contenders, key=lambda label: sign * means[label])
    rivals = [pair.seen_from(leader) for pair in pairs if leader in (pair.first, pair.second)]
    if len(rivals) < len(labels) - 1:
        return verdict(
            "undecided", [], list(labels), f"undecided: no {question.unit.name} has figures for all"
        )
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
        more_range = _range_of(unsettled, more)
        text = _open_question(candidates, unsettled) + _beaten_text(pairs, contenders)
        if outlook:
            text += f"; {_outlook(unsettled, more_range, question.unit, len(contenders))}"
        return verdict("undecided", [], candidates, text, more, more_range)
    first_place = [label for label in labels if label == leader or label in sharing]
    margin = margin_text(design.margin)
    if not beaten:
        return verdict(
            "equal", first_place, first_place, f"{join_schedulers(first_place)} are equal within {margin}"
        )
    if sharing:
        behind = join_schedulers([pair.second for pair in beaten])
        text = f"{join_schedulers(first_place)} are equal within {margin} and ahead of {behind}"
        return verdict("equal", first_place, first_place, text)
    return verdict("best", [leader], [leader], f"{scheduler_text(leader)} is best: {beaten[0].effect}")


def in_the_race(pairs: Sequence[Comparison], labels: Sequence[str]) -> list[str]:
    """Schedulers that no other one beats; all of them if the claims contradict each other in a circle."""
    out = {pair.second for pair in pairs if pair.outcome == "better"}
    out |= {pair.first for pair in pairs if pair.outcome == "worse"}
    return [label for label in labels if label not in out] or list(labels)


def _open_question(candidates: Sequence[str], unsettled: Sequence[Comparison]) -> str:
    """The candidates, and the closest of the open pairs."""
    nearest = min(unsettled, key=lambda pair: abs(math.log(pair.ratio)))
    return (
        f"undecided between {join_schedulers(candidates)} ({scheduler_text(nearest.first)}: {nearest.effect})"
    )


def _beaten_text(pairs: Sequence[Comparison], contenders: Sequence[str]) -> str:
    """Those that are out, each with the contender (or else another one) that beats it by most."""
    seen = [pair.seen_from(label) for pair in pairs for label in (pair.first, pair.second)]
    by_loser: dict[str, list[Comparison]] = {}
    for pair in seen:
        if pair.outcome == "better" and pair.second not in contenders:
            by_loser.setdefault(pair.second, []).append(pair)
    strongest = [
        max(found, key=lambda pair: (pair.first in contenders, abs(math.log(pair.ratio))))
        for found in by_loser.values()
    ]
    return "".join(
        f"; {scheduler_text(pair.first)} beats {scheduler_text(pair.second)} ({pair.ratio_alone})"
        for pair in strongest
    )


def _range_of(unsettled: Sequence[Comparison], more: int | None) -> MoreSamples | None:
    """The range of the longest need."""
    longest = next((pair for pair in unsettled if pair.more_blocks == more), None)
    if more is None or longest is None:
        return None
    return range_of_more(more, longest.n * longest.samples_per_value)


def _outlook(
    unsettled: Sequence[Comparison], more: MoreSamples | None, unit: SampleUnit, nr_contenders: int
) -> str:
    """The number of blocks or rounds that a decision would take."""
    if unsettled[0].n < FEWEST_BLOCKS:
        return f"at least {unit.count(FEWEST_BLOCKS)} are needed"
    if more is None or not unit.within_reach(more.least, nr_contenders):
        return f"more {unit.name}s are unlikely to tell them apart"
    if not more.is_worth_it:
        return f"it would take over {MOST_TIMES_AS_MANY} times as many {unit.name}s: not worth it"
    return f"{unit.more_between(more.least, more.most, nr_contenders)} would probably decide"


def longest_need(needs: Iterable[int | None]) -> int | None:
    """Blocks until the slowest question is settled; None if one of them is hopeless."""
    longest = 0
    for need in needs:
        if need is None:
            return None
        longest = max(longest, need)
    return longest
