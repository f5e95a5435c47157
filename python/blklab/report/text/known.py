"""The settled part of an open verdict: who is beaten by whom, who is equal, and how close the rest is.

A first place can be open while most pairs are settled. These sentences come from the comparisons of the
metric that decides; with a goal, from the comparisons of its scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from blklab.analysis.metrics import METRICS
from blklab.quantities.formatting import join_schedulers, margin_text, metric_title, rounded, scheduler_text
from blklab.quantities.sample_units import SampleUnit
from blklab.report.documents.comparison import CompareDocument, MetricVerdictPart
from blklab.report.documents.parts import PairPart
from blklab.report.summary.designs import common_unit, unit_of
from blklab.report.summary.regret import own_loss
from blklab.report.summary.standing import (
    deciding_verdict,
    judged_workloads,
    labels_of,
    results_of,
    reversed_pair,
)
from blklab.report.text.wording import effect_of, finding

WIDE_INTERVAL = 3.0
"""Ratio of its bounds from which an interval of a ratio is shown by its bounds alone."""


@dataclass(frozen=True)
class Known:
    """The settled and the open part of one question."""

    subject: str
    """The workload and the metric that decides, or the goal."""
    settled: list[str]
    """A clause for each beaten scheduler and each group of equals, and the loss by staying under one of
    several workloads, without a full stop; may be empty."""
    still_open: str | None
    """The schedulers that may still be first, and how close the nearest two are; None once settled."""


def known_so_far(document: CompareDocument) -> list[Known]:
    """One entry for each question that the verdict rests on; empty if no run gave a figure."""
    goal = document.goal
    if goal is not None:
        verdict = document.verdict
        candidates = verdict.candidates if verdict.status == "undecided" else []
        unit = common_unit(document)
        known = _known(f"goal {goal.goal}", goal.comparisons, "goal", document, candidates, unit)
        return [known] if goal.comparisons else []
    entries = []
    for workload in judged_workloads(document):
        found = deciding_verdict(document, workload)
        if found is not None:
            entries.append(_known_of_workload(document, found))
    return entries


def anything_settled(entries: Sequence[Known]) -> bool:
    """Whether anything is known: a settled pair, or how much is lost at most."""
    return any(entry.settled for entry in entries)


def _known_of_workload(document: CompareDocument, verdict: MetricVerdictPart) -> Known:
    subject = f"{verdict.workload}, {metric_title(verdict.metric)}"
    if verdict.status != "undecided":
        return Known(subject, [finding(document, verdict)], None)
    lacking = set(labels_of(document)) - results_of(document, verdict.workload, verdict.metric).keys()
    if lacking:
        missing = join_schedulers([label for label in labels_of(document) if label in lacking])
        return Known(subject, [], f"no figure for {missing}")
    pairs = [
        pair
        for pair in document.comparisons
        if (pair.workload, pair.metric) == (verdict.workload, verdict.metric)
    ]
    unit = unit_of(document, verdict.workload)
    known = _known(subject, pairs, verdict.metric, document, verdict.candidates, unit)
    loss = own_loss(document, verdict)
    return known if loss is None else replace(known, settled=[*known.settled, loss])


def _known(
    subject: str,
    pairs: Sequence[PairPart],
    metric: str,
    document: CompareDocument,
    candidates: Sequence[str],
    unit: SampleUnit,
) -> Known:
    """Settled pairs in words.

    Args:
        subject: As `Known.subject`.
        pairs: All comparisons of the question.
        metric: Name of the metric, or ``goal`` for scores, of which a higher one is better.
        document: For the schedulers' order and the margin.
        candidates: Schedulers that may be first, the leader first; empty if the question is settled.
        unit: In which its samples are counted.
    """
    settled = _beaten(pairs, metric, labels_of(document))
    settled += _equal(pairs, candidates, document.margin)
    still_open = _still_open(pairs, metric, candidates, unit) if candidates else None
    return Known(subject, settled, still_open)


def _beaten(pairs: Sequence[PairPart], metric: str, labels: Sequence[str]) -> list[str]:
    """``none and kyber beat bfq: with none, IOPS is 82 % [75, 90] higher than with bfq``."""
    clauses = []
    for loser in labels:
        won = [
            seen
            for pair in pairs
            if (seen := _seen_against(pair, loser)) is not None and seen.outcome == "better"
        ]
        if not won:
            continue
        strongest = max(won, key=lambda pair: pair.ratio if _higher_is_better(metric) else 1 / pair.ratio)
        winners = [label for label in labels if label in {pair.first for pair in won}]
        verb = "beats" if len(winners) == 1 else "beat"
        effect = effect_of(strongest.ratio, strongest.ci_low, strongest.ci_high)
        clauses.append(
            f"{join_schedulers(winners)} {verb} {scheduler_text(loser)}: with "
            f"{scheduler_text(strongest.first)}, {_title(metric)} is {effect} with {scheduler_text(loser)}"
        )
    return clauses


def _equal(pairs: Sequence[PairPart], candidates: Sequence[str], margin: float) -> list[str]:
    """``none and kyber are equal within 2 %``, for pairs that may still share the first place."""
    return [
        f"{join_schedulers([pair.first, pair.second])} are equal within {margin_text(margin)}"
        for pair in pairs
        if pair.outcome == "equal" and pair.first in candidates and pair.second in candidates
    ]


def _still_open(pairs: Sequence[PairPart], metric: str, candidates: Sequence[str], unit: SampleUnit) -> str:
    """The candidates, and how far the leader is ahead of the open one with the nearest figure."""
    text = f"still open: {join_schedulers(candidates)}"
    leader = candidates[0]
    lead = scheduler_text(leader)
    against = {
        seen.second: seen
        for pair in pairs
        if leader in (pair.first, pair.second)
        for seen in [pair if pair.first == leader else reversed_pair(pair)]
        if seen.second in candidates and seen.outcome != "equal"
    }
    if not against:
        return text
    nearest = min(against.values(), key=lambda pair: max(pair.ratio, 1 / pair.ratio))
    rival = scheduler_text(nearest.second)
    low, high = nearest.ci_low, nearest.ci_high
    if low is None or high is None:
        return f"{text} (too few {unit.plain_name}s for intervals)"
    if high > WIDE_INTERVAL * low:
        return (
            f"{text} ({lead} leads, but its {_title(metric)} may be anything from {_percent(low)} to "
            f"{_percent(high)} than with {rival})"
        )
    effect = effect_of(nearest.ratio, low, high)
    # A mean over all samples may lead although the paired comparison points the other way.
    is_ahead = (nearest.ratio >= 1) == _higher_is_better(metric)
    figure = _title(metric)
    leads = f"{lead} leads, with {figure}" if is_ahead else f"with {lead}, {figure} is"
    return f"{text} ({leads} {effect} with {rival}, which may be chance)"


def _percent(ratio: float) -> str:
    """``140 % higher`` or ``89 % lower``, in two digits."""
    difference = 100 * abs(ratio - 1)
    return f"{rounded(difference, difference)} % {'higher' if ratio >= 1 else 'lower'}"


def _seen_against(pair: PairPart, label: str) -> PairPart | None:
    """The pair as a ratio of the other scheduler to this one; None if this one is not in it."""
    if label == pair.second:
        return pair
    return reversed_pair(pair) if label == pair.first else None


def _higher_is_better(metric: str) -> bool:
    return metric == "goal" or METRICS[metric].better == "higher"


def _title(metric: str) -> str:
    return "the score" if metric == "goal" else metric_title(metric)
