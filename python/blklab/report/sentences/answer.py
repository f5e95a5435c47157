"""The answer to a whole experiment or class of drives in a sentence, and the reason for its choice."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch

from blklab.analysis.overall import (
    Basis,
    BetterThanInForce,
    ChoiceReason,
    DependsOnWork,
    FirstEverywhere,
    ForGoal,
    GoodEnough,
    NoFiguresFor,
    OneWorkload,
    OpenWorkloads,
    Withheld,
)
from blklab.analysis.ranking import MetricVerdict
from blklab.analysis.tie_breaking import UsuallyInForce, WasInForce
from blklab.quantities.formatting import count_of, join_names, join_schedulers, metric_title, scheduler_text
from blklab.report.sentences.first_place import first_place_text
from blklab.report.sentences.pairs import pair_effect

_MOST_WORKLOADS = 6
"""So many a sentence names."""


@singledispatch
def basis_text(basis: Basis) -> str:
    """The grounds of the answer, without a full stop."""
    raise TypeError(f"there is no sentence for {type(basis).__name__}")


@basis_text.register
def _(basis: NoFiguresFor) -> str:
    return f"undecided: no figures for {_few(basis.workloads)}"


@basis_text.register
def _(basis: OneWorkload) -> str:
    only = basis.verdict
    return f"{only.workload}, by {metric_title(only.metric)}: {first_place_text(only.place)}"


@basis_text.register
def _(basis: OpenWorkloads) -> str:
    settled = f"; settled: {_winners(basis.settled)}" if basis.settled else ""
    return f"undecided for {_few(basis.workloads)}{settled}"


@basis_text.register
def _(basis: DependsOnWork) -> str:
    return f"it depends on the work: {_winners(basis.verdicts)}"


@basis_text.register
def _(basis: FirstEverywhere) -> str:
    if len(basis.schedulers) == 1:
        return f"{scheduler_text(basis.schedulers[0])} is best or shares the first place in every workload"
    return f"{join_schedulers(basis.schedulers)} share the first place in every workload"


@basis_text.register
def _(basis: ForGoal) -> str:
    if basis.verdict is None:
        return f"undecided: no block has figures for the goal {basis.goal}"
    return f"for the goal {basis.goal}: {first_place_text(basis.verdict.place)}"


@basis_text.register
def _(basis: Withheld) -> str:
    differing = differing_text(basis.names, are_copies=basis.are_copies)
    return f"withheld because {differing}; otherwise: {basis_text(basis.otherwise)}"


def differing_text(names: Sequence[str], *, are_copies: bool) -> str:
    """``the control cached-read differs``, ``the unchanged copy kyber@copy differs from its original``."""
    single = len(names) == 1
    if are_copies:
        subject = "unchanged copy" if single else "unchanged copies"
        verb = "differs from its original" if single else "differ from their originals"
    else:
        subject, verb = "control" if single else "controls", "differs" if single else "differ"
    return f"the {subject} {join_names(names)} {verb}"


def choice_reason_text(reason: ChoiceReason | None) -> str:
    """The reason for which one of several is to be taken; empty if none is needed."""
    if reason is None:
        return ""
    if isinstance(reason, WasInForce):
        return "the default, which was in force before"
    if isinstance(reason, UsuallyInForce):
        return f"in force before on {reason.drives} of {reason.of} drives"
    if isinstance(reason, GoodEnough):
        return "it is good enough"
    if isinstance(reason, BetterThanInForce):
        return f"it is better than {reason.in_force}, which was in force before"
    return f"the cheapest in CPU: {pair_effect(reason.pair)}"


def _few(workloads: Sequence[str]) -> str:
    """Names of workloads; of very many the first."""
    if len(workloads) <= _MOST_WORKLOADS:
        return join_names(workloads)
    return join_names([*workloads[: _MOST_WORKLOADS - 1], f"{len(workloads) - _MOST_WORKLOADS + 1} others"])


def _winners(verdicts: Sequence[MetricVerdict]) -> str:
    told = [f"{verdict.workload}: {join_schedulers(verdict.best)}" for verdict in verdicts[:_MOST_WORKLOADS]]
    left = len(verdicts) - len(told)
    return "; ".join([*told, count_of(left, "other")] if left else told)
