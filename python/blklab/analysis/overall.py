"""The answer to the whole experiment: the verdicts of its workloads, or of its goal, taken together.

With a goal the answer rests on the goal's score over all workloads alone, and the workloads' own verdicts are
description. A control that differs withholds every recommendation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from blklab.analysis.comparison import Comparison
from blklab.analysis.ranking import MetricVerdict, longest_need
from blklab.analysis.recommendation import Recommendation
from blklab.analysis.regret import Regret
from blklab.analysis.statistics.sample_size import MoreSamples
from blklab.analysis.tie_breaking import TieBreak
from blklab.quantities.formatting import join_names, join_schedulers, metric_title, scheduler_text
from blklab.spec.goals import Goal

OverallStatus = Literal["best", "equal", "undecided", "withheld"]
"""``withheld``: a control differs, so nothing is recommended, whatever the values say."""


@dataclass(frozen=True)
class Verdict:
    """The answer to the whole experiment."""

    status: OverallStatus
    best: list[str]
    candidates: list[str]
    """Those not ruled out; while withheld, those that would be best or candidates without the control."""
    text: str
    more_blocks: int | None
    warnings: list[str] = field(default_factory=list)
    choice: str | None = None
    """The one to take: the best, of equals the one that `blklab.analysis.tie_breaking` names, or while
    undecided one that is good enough or better than the one in force; else None."""
    choice_reason: str = ""
    """The reason to take this one, of several equals or of several that are not told apart."""
    regret: list[Regret] = field(default_factory=list)
    """The most that is lost by taking each scheduler: those in force first, then by their bounds."""
    recommendation: Recommendation | None = None
    """The advice that follows; None for an answer that is no experiment's own."""
    more_range: MoreSamples | None = None
    """The range of `more_blocks`."""


def overall_verdict(
    judged: Sequence[str], verdicts: Sequence[MetricVerdict], labels: Sequence[str]
) -> Verdict:
    """One answer for all workloads: the scheduler that is best, or shares the first place, in each of them.

    Args:
        judged: Names of the workloads that the answer rests on.
        verdicts: Of all metrics and workloads.
        labels: All schedulers.
    """
    deciding = {v.workload: v for v in verdicts if v.decides}
    lacking = [name for name in judged if name not in deciding]
    if lacking:
        return _undecided(list(labels), f"undecided: no figures for {join_names(lacking)}")
    present = [deciding[name] for name in judged]
    if len(present) == 1:
        (only,) = present
        text = f"{only.workload}, by {metric_title(only.metric)}: {only.text}"
        return Verdict(
            only.status, only.best, only.candidates, text, only.more_blocks, more_range=only.more_range
        )
    candidates = [label for label in labels if all(label in v.candidates for v in present)]
    unsettled = [v for v in present if v.status == "undecided"]
    if unsettled:
        text = f"undecided for {join_names([v.workload for v in unsettled])}"
        settled = [v for v in present if v.status != "undecided"]
        if settled:
            text += f"; settled: {_winners(settled)}"
        more = longest_need(v.more_blocks for v in unsettled)
        longest = next((v for v in unsettled if v.more_blocks == more), None)
        return _undecided(candidates, text, more, None if longest is None else longest.more_range)
    if not candidates:
        return _undecided([], f"it depends on the work: {_winners(present)}")
    if len(candidates) == 1:
        text = f"{scheduler_text(candidates[0])} is best or shares the first place in every workload"
        return Verdict("best", candidates, candidates, text, None)
    text = f"{join_schedulers(candidates)} share the first place in every workload"
    return Verdict("equal", candidates, candidates, text, None)


def verdict_for_goal(goal: Goal, found: MetricVerdict | None, labels: Sequence[str]) -> Verdict:
    """The verdict on a goal's score as that of the whole; None if there are no scores."""
    name = goal.canonical
    if found is None:
        return _undecided(list(labels), f"undecided: no block has figures for the goal {name}")
    text = f"for the goal {name}: {found.text}"
    return Verdict(
        found.status, found.best, found.candidates, text, found.more_blocks, more_range=found.more_range
    )


def with_choice(
    verdict: Verdict,
    tie: TieBreak | None,
    differing: Sequence[Comparison],
    warnings: Sequence[str],
    placebos: Sequence[Comparison] = (),
) -> Verdict:
    """The answer with the one of the best to take, or withheld.

    Args:
        verdict: The answer of the schedulers' values.
        tie: Of several equals the one to take, if a rule tells them apart.
        differing: Pairs that differ in a control (`differing_controls`).
        warnings: Follow those about controls.
        placebos: Unchanged copies that differ from their originals (`differing_placebos`).
    """
    about = [*map(_control_warning, differing), *map(_placebo_warning, placebos)]
    verdict = replace(verdict, warnings=[*about, *warnings])
    if verdict.status == "best":
        verdict = replace(verdict, choice=verdict.best[0])
    elif tie is not None:
        verdict = replace(verdict, choice=tie.label, choice_reason=tie.reason)
    controls = list(dict.fromkeys(pair.workload for pair in differing))
    copies = list(dict.fromkeys(pair.first for pair in placebos))
    if copies and verdict.status in ("best", "equal"):
        verb = "differs from its original" if len(copies) == 1 else "differ from their originals"
        what = "copy" if len(copies) == 1 else "copies"
        text = f"withheld because the unchanged {what} {join_names(copies)} {verb}; otherwise: {verdict.text}"
        return Verdict("withheld", [], verdict.best, text, None, verdict.warnings)
    if not controls or verdict.status not in ("best", "equal"):
        return verdict
    # Something other than the scheduler was at work.
    verb = "differs" if len(controls) == 1 else "differ"
    text = f"withheld because the control {join_names(controls)} {verb}; otherwise: {verdict.text}"
    return Verdict("withheld", [], verdict.best, text, None, verdict.warnings)


def with_recommendation(verdict: Verdict, found: Sequence[Regret], advised: Recommendation) -> Verdict:
    """The answer with what to do, and with what is lost at most by each choice."""
    verdict = replace(verdict, regret=list(found), recommendation=advised)
    if not advised.is_shown or advised.reason in ("best", "equal"):
        return verdict
    reason = "it is good enough"
    if advised.reason == "better":
        reason = f"it is better than {advised.in_force}, which was in force before"
    return replace(verdict, choice=advised.scheduler, choice_reason=reason)


def differing_controls(
    verdicts: Sequence[MetricVerdict], comparisons: Sequence[Comparison]
) -> list[Comparison]:
    """Pairs that differ in a control by the metric that decides."""
    deciding = {(v.workload, v.metric) for v in verdicts if v.control and v.decides}
    return [
        pair
        for pair in comparisons
        if (pair.workload, pair.metric) in deciding and pair.outcome in ("better", "worse")
    ]


def differing_placebos(
    copies: Mapping[str, str], verdicts: Sequence[MetricVerdict], comparisons: Sequence[Comparison]
) -> list[Comparison]:
    """Unchanged copies that differ from their originals by a metric that decides, seen from the copy.

    Args:
        copies: The label of each copy, with that of its original.
        verdicts: Of all workloads and metrics.
        comparisons: Of all pairs.
    """
    deciding = {(v.workload, v.metric) for v in verdicts if v.decides}
    return [
        pair.seen_from(copy)
        for copy, original in copies.items()
        for pair in comparisons
        if {pair.first, pair.second} == {copy, original}
        and (pair.workload, pair.metric) in deciding
        and pair.outcome in ("better", "worse")
    ]


def _placebo_warning(pair: Comparison) -> str:
    """A copy without a change that differs points at the set-up or the build, not at a patch."""
    return (
        f"{pair.workload}: {pair.first} is {pair.second} without a change, and differs from it "
        f"({pair.effect}): something else than a patch is at work, so nothing is recommended"
    )


def _control_warning(pair: Comparison) -> str:
    """A control that differs points at the set-up, not at the schedulers."""
    return (
        f"the control {pair.workload} differs although no scheduler can influence it "
        f"({scheduler_text(pair.first)}: {pair.effect}): something else differs between the runs, so nothing "
        "is recommended"
    )


def _undecided(
    candidates: list[str],
    text: str,
    more_blocks: int | None = None,
    more_range: MoreSamples | None = None,
) -> Verdict:
    return Verdict("undecided", [], candidates, text, more_blocks, more_range=more_range)


def _winners(verdicts: Sequence[MetricVerdict]) -> str:
    return "; ".join(f"{v.workload}: {join_schedulers(v.best)}" for v in verdicts)
