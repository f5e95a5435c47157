"""Who has the first place under a workload, by one metric.

A scheduler that any other is better than is out of the race for it. Of the rest, one is the best if no other
is left; those that are equal to the leader share its place; as long as one is left that is not equal to the
leader, the workload is undecided and no winner is named.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from blklab.analysis.comparison import FEWEST_BLOCKS, Comparison, Question, describe_effect
from blklab.analysis.metrics import Metric
from blklab.quantities.formatting import count_of, join_names, margin_text, within_reach
from blklab.spec.experiment import ExperimentSpec

Status = Literal["best", "equal", "undecided"]


@dataclass(frozen=True)
class MetricVerdict:
    """What one metric says of one workload."""

    workload: str
    metric: str
    decides: bool
    """Whether the workload's verdict rests on this metric."""
    control: bool
    status: Status
    best: list[str]
    """The winner, or those that share the first place; empty while undecided."""
    candidates: list[str]
    """Those that nothing has ruled out yet."""
    text: str
    more_blocks: int | None


def metric_verdict(
    question: Question,
    pairs: Sequence[Comparison],
    spec: ExperimentSpec,
    labels: Sequence[str],
    *,
    outlook: bool = True,
) -> MetricVerdict:
    """The first place and who shares it.

    Args:
        question: A metric of a workload.
        pairs: Its comparisons.
        spec: The experiment.
        labels: All schedulers.
        outlook: Whether to say what an open question would take.
    """
    metric, name = question.metric, question.workload.name

    def verdict(
        status: Status, best: list[str], candidates: list[str], text: str, more: int | None = None
    ) -> MetricVerdict:
        return MetricVerdict(
            name,
            metric.name,
            question.decides,
            question.workload.control,
            status,
            best,
            candidates,
            text,
            more,
        )

    missing = [
        label for label in labels if not any(value > 0 for value in question.values.get(label, {}).values())
    ]
    if missing:
        return verdict("undecided", [], list(labels), f"undecided: no figure for {join_names(missing)}")
    means = {
        label: math.fsum(logs) / len(logs)
        for label in labels
        if (logs := [math.log(value) for value in question.values[label].values() if value > 0])
    }
    sign = 1 if metric.better == "higher" else -1
    contenders = in_the_race(pairs, labels)
    leader = max(contenders, key=lambda label: sign * means[label])
    rivals = [pair.seen_from(leader) for pair in pairs if leader in (pair.first, pair.second)]
    if len(rivals) < len(labels) - 1:
        return verdict("undecided", [], list(labels), "undecided: no block has figures for all")
    among = [pair for pair in rivals if pair.second in contenders]
    unsettled = [pair for pair in among if pair.outcome in ("undecided", "worse")]
    sharing = [pair.second for pair in among if pair.outcome == "equal"]
    # A rival may have been beaten by another than the leader: those that the leader beat itself come first.
    beaten = sorted(
        (pair for pair in rivals if pair.second not in contenders),
        key=lambda pair: (pair.outcome != "better", -sign * means[pair.second]),
    )
    if unsettled:
        candidates = [leader, *sharing, *(pair.second for pair in unsettled)]
        more = longest_need(pair.more_blocks for pair in unsettled)
        text = _open_question(candidates, unsettled, metric)
        if outlook:
            text += f"; {_outlook(unsettled, more)}"
        return verdict("undecided", [], candidates, text, more)
    first_place = [label for label in labels if label == leader or label in sharing]
    margin = margin_text(spec.margin)
    if not beaten:
        return verdict(
            "equal", first_place, first_place, f"{join_names(first_place)} are equal within {margin}"
        )
    if sharing:
        behind = join_names([pair.second for pair in beaten])
        text = f"{join_names(first_place)} are equal within {margin} and ahead of {behind}"
        return verdict("equal", first_place, first_place, text)
    return verdict("best", [leader], [leader], f"{leader} is best: {describe_effect(beaten[0], metric)}")


def in_the_race(pairs: Sequence[Comparison], labels: Sequence[str]) -> list[str]:
    """Those that no other is better than; all, should claims contradict each other in a circle."""
    out = {pair.second for pair in pairs if pair.outcome == "better"}
    out |= {pair.first for pair in pairs if pair.outcome == "worse"}
    return [label for label in labels if label not in out] or list(labels)


def _open_question(candidates: Sequence[str], unsettled: Sequence[Comparison], metric: Metric) -> str:
    """What is open between whom."""
    nearest = min(unsettled, key=lambda pair: abs(math.log(pair.ratio)))
    effect = f"{nearest.first}: {describe_effect(nearest, metric)}"
    return f"undecided between {join_names(candidates)} ({effect})"


def _outlook(unsettled: Sequence[Comparison], more: int | None) -> str:
    """What it would take to decide."""
    if unsettled[0].n < FEWEST_BLOCKS:
        return f"at least {FEWEST_BLOCKS} blocks are needed"
    if within_reach(more):
        return f"about {count_of(more, 'more block')} would probably decide"
    return "more blocks are unlikely to tell them apart"


def longest_need(needs: Iterable[int | None]) -> int | None:
    """Blocks until the slowest question is settled; nothing if one of them is hopeless."""
    longest = 0
    for need in needs:
        if need is None:
            return None
        longest = max(longest, need)
    return longest
