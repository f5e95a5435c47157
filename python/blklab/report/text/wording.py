"""Findings on one question in words: the winner, its lead, and what is open."""

from __future__ import annotations

from blklab.analysis.metrics import METRICS
from blklab.quantities.formatting import (
    join_names,
    join_schedulers,
    margin_text,
    metric_title,
    rounded,
    scheduler_text,
)
from blklab.quantities.ratios import reciprocal_interval
from blklab.report.documents.comparison import CompareDocument, MetricVerdictPart
from blklab.report.summary.designs import unit_of
from blklab.report.summary.standing import (
    deciding_verdict,
    differing_controls,
    judged_workloads,
    labels_of,
    pairs_against,
    results_of,
)

TWICE = 2.0
"""From here on a factor reads better than a percentage."""


def open_question(document: CompareDocument) -> str:
    """A clause on the workloads whose first place is open, and on those where it is settled."""
    if document.goal is not None:
        return f"the best scheduler for the goal {document.goal.goal} is not settled"
    judged = judged_workloads(document)
    found = {name: verdict for name in judged if (verdict := deciding_verdict(document, name)) is not None}
    without_figure = [name for name in judged if name not in found]
    open_ones = [name for name in found if found[name].status == "undecided"]
    settled = [name for name in found if found[name].status != "undecided"]
    parts = []
    if open_ones:
        parts.append(f"the best scheduler for {join_names(open_ones)} is not settled")
    if without_figure:
        parts.append(f"no run gave a figure for {join_names(without_figure)}")
    if settled:
        parts.append(f"{join_names(settled)} {'is' if len(settled) == 1 else 'are'} settled")
    return "; ".join(parts)


def finding(document: CompareDocument, verdict: MetricVerdictPart) -> str:
    """The verdict of one metric for one workload; for a winner, its lead over the next best."""
    quiet_control = verdict.control and verdict.workload not in differing_controls(document)
    if quiet_control and verdict.status == "undecided":
        margin = margin_text(document.margin)
        part = unit_of(document, verdict.workload).part
        return f"no difference found, but the {part}s scatter too much to call all equal within {margin}"
    if verdict.status == "undecided" and _all_have_figures(document, verdict):
        return f"undecided between {join_schedulers(verdict.candidates)}"
    if verdict.status != "best":
        return verdict.text
    winner = verdict.best[0]
    results = results_of(document, verdict.workload, verdict.metric)
    sign = -1 if METRICS[verdict.metric].better == "higher" else 1
    pairs = pairs_against(document, verdict.workload, verdict.metric, winner)
    rivals = sorted((name for name in pairs if name in results), key=lambda name: sign * results[name].mean)
    if not rivals:
        return verdict.text
    pair = pairs[rivals[0]]
    # The pair is rival over winner; the sentence gives winner over rival.
    low, high = reciprocal_interval(pair.ci_low, pair.ci_high)
    rival, won = scheduler_text(rivals[0]), scheduler_text(winner)
    next_best = f"with {rival}, the next best" if len(rivals) > 1 else f"with {rival}"
    effect = effect_of(1 / pair.ratio, low, high)
    if verdict.control:
        return f"a control, yet {won} has {metric_title(verdict.metric)} {effect} {next_best}"
    return f"{won} is best, with {metric_title(verdict.metric)} {effect} {next_best}"


def _all_have_figures(document: CompareDocument, verdict: MetricVerdictPart) -> bool:
    """Whether the first place is open between schedulers, and not for want of figures."""
    results = results_of(document, verdict.workload, verdict.metric)
    pairs = pairs_against(document, verdict.workload, verdict.metric, verdict.candidates[0])
    labels = labels_of(document)
    return all(label in results for label in labels) and len(pairs) == len(labels) - 1


def effect_of(ratio: float, low: float | None, high: float | None) -> str:
    """``12 % [8, 17] higher than``, from twice as much on ``3.1 [2.8, 3.4] times as high as``."""
    if ratio >= TWICE:
        return f"{_with_interval(ratio, _ordered([low, high]))} times as high as"
    factor = 100 if ratio >= 1 else -100
    bounds = _ordered([None if bound is None else factor * (bound - 1) for bound in (low, high)])
    figure, _, interval = _with_interval(factor * (ratio - 1), bounds).partition(" ")
    return f"{figure} %{' ' + interval if interval else ''} {'higher' if ratio >= 1 else 'lower'} than"


def _ordered(bounds: list[float | None]) -> tuple[float, float] | None:
    present = sorted(bound for bound in bounds if bound is not None)
    return (present[0], present[1]) if len(present) == 2 else None


def _with_interval(value: float, bounds: tuple[float, float] | None) -> str:
    if bounds is None:
        return rounded(value)
    half = (bounds[1] - bounds[0]) / 2
    low, high = (rounded(bound, half, digits_of=value) for bound in bounds)
    figure = rounded(value, half)
    # In virtual time repetitions agree to the last digit.
    return figure if low == high == figure else f"{figure} [{low}, {high}]"
