"""The answer to the whole experiment: the verdicts of its workloads, or of its goal, taken together.

With a goal the answer rests on the goal's score over all workloads alone, and the workloads' own verdicts are
description. A control that differs withholds every recommendation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from blklab.analysis.doubts import DifferingControl, DifferingCopy, Doubt
from blklab.analysis.ranking import MetricVerdict, longest_need
from blklab.analysis.recommendation import Recommendation
from blklab.analysis.regret import Regret
from blklab.analysis.statistics.sample_size import MoreSamples
from blklab.analysis.tie_breaking import CheapestInCpu, TieBreak, UsuallyInForce, WasInForce
from blklab.spec.goals import Goal

OverallStatus = Literal["best", "equal", "undecided", "withheld"]
"""``withheld``: a control differs, so nothing is recommended, whatever the values say."""


@dataclass(frozen=True)
class NoFiguresFor:
    """Undecided: some workloads have no figures at all."""

    workloads: Sequence[str]


@dataclass(frozen=True)
class OneWorkload:
    """The answer is that of the only workload."""

    verdict: MetricVerdict


@dataclass(frozen=True)
class OpenWorkloads:
    """Undecided: the first place of some workloads is open."""

    workloads: Sequence[str]
    settled: Sequence[MetricVerdict]


@dataclass(frozen=True)
class DependsOnWork:
    """Undecided for good: each workload has another winner."""

    verdicts: Sequence[MetricVerdict]


@dataclass(frozen=True)
class FirstEverywhere:
    """These are best, or share the first place, in every workload."""

    schedulers: Sequence[str]


@dataclass(frozen=True)
class ForGoal:
    """The answer is that of the goal's score."""

    goal: str
    """As ``--goal`` takes it."""
    verdict: MetricVerdict | None
    """None if no block has a score."""


@dataclass(frozen=True)
class Withheld:
    """Controls or unchanged copies differ, so what was found is no answer."""

    names: Sequence[str]
    are_copies: bool
    otherwise: Basis


Basis = NoFiguresFor | OneWorkload | OpenWorkloads | DependsOnWork | FirstEverywhere | ForGoal | Withheld
"""The grounds of an answer."""


@dataclass(frozen=True)
class GoodEnough:
    """The choice is known to be close enough to the best."""


@dataclass(frozen=True)
class BetterThanInForce:
    """The choice is shown to be better than the scheduler in force."""

    in_force: str | None


ChoiceReason = WasInForce | UsuallyInForce | CheapestInCpu | GoodEnough | BetterThanInForce


@dataclass(frozen=True)
class Verdict:
    """The answer to the whole experiment."""

    status: OverallStatus
    best: list[str]
    candidates: list[str]
    """Those not ruled out; while withheld, those that would be best or candidates without the control."""
    basis: Basis
    more_blocks: int | None
    doubts: list[Doubt] = field(default_factory=list)
    choice: str | None = None
    """The one to take: the best, of equals the one that `blklab.analysis.tie_breaking` names, or while
    undecided one that is good enough or better than the one in force; else None."""
    choice_reason: ChoiceReason | None = None
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
        return _undecided(list(labels), NoFiguresFor(lacking))
    present = [deciding[name] for name in judged]
    if len(present) == 1:
        (only,) = present
        return _same_as(only, OneWorkload(only))
    candidates = [label for label in labels if all(label in v.candidates for v in present)]
    unsettled = [v for v in present if v.status == "undecided"]
    if unsettled:
        basis = OpenWorkloads(
            [v.workload for v in unsettled], [v for v in present if v.status != "undecided"]
        )
        more = longest_need(v.more_blocks for v in unsettled)
        longest = next((v for v in unsettled if v.more_blocks == more), None)
        return _undecided(candidates, basis, more, None if longest is None else longest.more_range)
    if not candidates:
        return _undecided([], DependsOnWork(present))
    status: OverallStatus = "best" if len(candidates) == 1 else "equal"
    return Verdict(status, candidates, candidates, FirstEverywhere(candidates), None)


def verdict_for_goal(goal: Goal, found: MetricVerdict | None, labels: Sequence[str]) -> Verdict:
    """The verdict on a goal's score as that of the whole; None if there are no scores."""
    basis = ForGoal(goal.canonical, found)
    return _undecided(list(labels), basis) if found is None else _same_as(found, basis)


def with_choice(
    verdict: Verdict,
    tie: TieBreak | None,
    controls: Sequence[DifferingControl],
    doubts: Sequence[Doubt],
    copies: Sequence[DifferingCopy] = (),
) -> Verdict:
    """The answer with the one of the best to take, or withheld.

    Args:
        verdict: The answer of the schedulers' values.
        tie: Of several equals the one to take, if a rule tells them apart.
        controls: Those that differ (`blklab.analysis.doubts.differing_controls`).
        doubts: Follow those about controls.
        copies: Those that differ from their originals (`blklab.analysis.doubts.differing_copies`).
    """
    verdict = replace(verdict, doubts=[*controls, *copies, *doubts])
    if verdict.status == "best":
        verdict = replace(verdict, choice=verdict.best[0])
    elif tie is not None:
        verdict = replace(verdict, choice=tie.label, choice_reason=tie.reason)
    if not (controls or copies) or verdict.status not in ("best", "equal"):
        return verdict
    # Something other than the scheduler was at work.
    names = [one.pair.first for one in copies] or [one.pair.workload for one in controls]
    basis = Withheld(list(dict.fromkeys(names)), bool(copies), verdict.basis)
    return Verdict("withheld", [], verdict.best, basis, None, verdict.doubts)


def with_recommendation(verdict: Verdict, found: Sequence[Regret], advised: Recommendation) -> Verdict:
    """The answer with what to do, and with what is lost at most by each choice."""
    verdict = replace(verdict, regret=list(found), recommendation=advised)
    if not advised.is_shown or advised.reason in ("best", "equal"):
        return verdict
    better = advised.reason == "better"
    reason = BetterThanInForce(advised.in_force) if better else GoodEnough()
    return replace(verdict, choice=advised.scheduler, choice_reason=reason)


def _same_as(found: MetricVerdict, basis: Basis) -> Verdict:
    """The answer that rests on one question alone."""
    return Verdict(
        found.status, found.best, found.candidates, basis, found.more_blocks, more_range=found.more_range
    )


def _undecided(
    candidates: list[str],
    basis: Basis,
    more_blocks: int | None = None,
    more_range: MoreSamples | None = None,
) -> Verdict:
    return Verdict("undecided", [], candidates, basis, more_blocks, more_range=more_range)
