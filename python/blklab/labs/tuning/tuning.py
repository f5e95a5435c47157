"""Tuning a target: a search on the model, and the usual verdict on the target for what it found."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from blklab.analysis.comparison import PairwiseComparison
from blklab.analysis.verdict import Analysis, analyse
from blklab.backends import THIS_MACHINE, Session, Workers
from blklab.errors import SpecError, TunableError, UsageError
from blklab.experiment.blocks import Observer
from blklab.experiment.pipeline import compare
from blklab.labs.tuning import DEFAULT_TRIALS
from blklab.labs.tuning.finalists import finalists
from blklab.labs.tuning.group_facts import is_own_model
from blklab.labs.tuning.importance import importances
from blklab.labs.tuning.model import (
    FoundTarget,
    find_target,
    model_for,
    opened,
    run_length_ns,
    space_of,
    spec_on_model,
)
from blklab.labs.tuning.search import search
from blklab.labs.tuning.space import Space
from blklab.labs.tuning.trials import Dimension, ModelTrials, Trial, dimensions_of
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import TargetDescription
from blklab.records.store import Store
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.plan import derive_seed
from blklab.spec.schedulers import SchedulerChoice


@dataclass(frozen=True)
class TuningRequest:
    """The target, the model, and the length of the search."""

    experiment: ExperimentSpec
    """Target, workloads, goal, conditions, and the confirmation's budget. Its schedulers are searched; none
    for all that tuning knows and the target offers."""
    model: str | None
    """Target of the search; None for the target itself, if that is a model."""
    trials: int = DEFAULT_TRIALS
    vary: tuple[str, ...] = ()
    """Names of the settings to vary; empty for all that matter to the load."""


@dataclass(frozen=True)
class ConfirmedCandidate:
    """A candidate that the target has confirmed: it beats the default there."""

    choice: SchedulerChoice
    gains: list[PairwiseComparison]
    """The candidate against the default, by each question that the verdict rests on."""


@dataclass(frozen=True)
class Tuning:
    """A search and its confirmation."""

    request: TuningRequest
    model: str
    target: TargetDescription
    default: SchedulerChoice
    space: Space
    dimensions: list[Dimension]
    trials: list[Trial]
    simulated_runs: int
    importances: dict[str, dict[str, float]]
    finalists: list[Trial]
    record: ExperimentRecord | None
    """The confirmation; None if the model finds nothing better than the default."""
    analysis: Analysis | None
    recommendation: ConfirmedCandidate | None


class TuningObserver(Observer, Protocol):
    """Receives progress of both parts."""

    def searching(self, done: int, planned: int, best: Trial | None, gain: float) -> None:
        """A batch of trials begins; the best so far gains so much, as a fraction."""


@dataclass(frozen=True)
class Preparation:
    """All that is settled before the search."""

    model: str
    target: FoundTarget
    on_model: ExperimentSpec
    """The experiment on the model, with the length of its runs."""
    space: Space


def prepare(request: TuningRequest, *, dry_run: bool = False) -> Preparation:
    """Looks at target and model; leaves no change behind.

    Args:
        request: Target, model and length of the search.
        dry_run: Changes nothing meanwhile either; the model's defaults then stand for the target's.

    Raises:
        BlklabError: if one of them cannot be used.
    """
    spec = request.experiment
    found = find_target(spec, dry_run=dry_run)
    model = model_for(spec, request.model, Path.cwd())
    on_model = spec_on_model(spec, model, found.description)
    on_model = on_model.model_copy(update={"runtime_ns": run_length_ns(on_model, found.default)})
    with opened(on_model) as session:
        space = space_of(on_model, found, session, request.vary, own_model=is_own_model(spec, model))
    return Preparation(model, found, on_model, space)


def tune(
    request: TuningRequest, store: Store, observer: TuningObserver, *, workers: Workers = THIS_MACHINE
) -> Tuning:
    """Searches the model and confirms on the target.

    Args:
        request: Target, model and length of the search.
        store: Receives the confirmation.
        observer: Receives progress.
        workers: Run the simulations of the search.

    Raises:
        InterruptedRunError: on a signal; a confirmation that has begun is kept.
        BlklabError: if the search or the confirmation cannot be made.
    """
    spec = request.experiment
    prepared = prepare(request)
    default, space = prepared.target.default, prepared.space
    observer.announce(f"searching on {prepared.model}")
    with opened(prepared.on_model, workers=workers) as session:
        runs = ModelTrials(session, prepared.on_model, default)
        planned = min(request.trials, space.size)

        def progressed(done: int, best: Trial | None) -> None:
            gain = 0.0 if best is None else best.score(runs.dimensions)
            observer.searching(done, planned, best, math.expm1(gain))

        trials = search(
            space, runs, trials=request.trials, seed=derive_seed(spec.seed, "search"), progressed=progressed
        )
        last = finalists(trials, space, runs, default, margin=spec.margin)
        explained = importances(trials, space, runs.dimensions)
    refuse_impossible(request, default, last)
    found = confirmed(request, prepared, last, store, observer)
    return replace(found, trials=trials, simulated_runs=runs.runs, importances=explained)


def refuse_impossible(request: TuningRequest, default: SchedulerChoice, candidates: list[Trial]) -> None:
    """Gives an error to the candidates that the target refuses.

    A kernel can round or limit what a model takes.

    Raises:
        BlklabError: if the target refuses the default too.
    """
    spec = request.experiment
    if not candidates:
        return
    with opened(spec) as session:
        session.check([default], spec.workloads)
        for trial in candidates:
            trial.error = _refusal(session, [default, trial.choice], spec)


def _refusal(session: Session, choices: list[SchedulerChoice], spec: ExperimentSpec) -> str | None:
    try:
        session.check(choices, spec.workloads)
    except (TunableError, UsageError, SpecError) as error:
        return error.message
    return None


def confirmed(
    request: TuningRequest,
    prepared: Preparation,
    candidates: list[Trial],
    store: Store,
    observer: Observer,
) -> Tuning:
    """Compares candidates with the default on the target, under seeds that a search has not seen.

    Args:
        request: Target, model and length of the search.
        prepared: `prepare` of it.
        candidates: Those to confirm, without those that have an error; with none left, the target is left
            alone.
        store: Receives the comparison.
        observer: Receives progress.

    Raises:
        InterruptedRunError: on a signal; a comparison that has begun is kept.
        BlklabError: if the comparison cannot be made.
    """
    spec, default = request.experiment, prepared.target.default
    found = Tuning(
        request=request,
        model=prepared.model,
        target=prepared.target.description,
        default=default,
        space=prepared.space,
        dimensions=dimensions_of(spec),
        trials=[],
        simulated_runs=0,
        importances={},
        finalists=candidates,
        record=None,
        analysis=None,
        recommendation=None,
    )
    possible = [one for one in candidates if one.error is None]
    if not possible:
        return found
    choices = [default, *(one.choice for one in possible)]
    seed = derive_seed(spec.seed, "confirmation")
    record = compare(spec.with_schedulers(choices).model_copy(update={"seed": seed}), store, observer)
    found = replace(found, record=record, analysis=analyse(record))
    return replace(found, recommendation=recommendation(found))


def recommendation(found: Tuning) -> ConfirmedCandidate | None:
    """The finalist that beats the default on the target and no other finalist.

    It must be better by at least one of the questions that the verdict rests on, and equal within the margin
    by the others. If several are, the one that changes least is taken.
    """
    analysis = found.analysis
    if analysis is None or analysis.verdict.status == "withheld":
        return None
    qualified: list[ConfirmedCandidate] = []
    for trial in found.finalists:
        gains = against_default(found.default, trial.choice, analysis)
        outcomes = [pair.outcome for pair in gains]
        if "better" in outcomes and all(one in ("better", "equal") for one in outcomes):
            qualified.append(ConfirmedCandidate(trial.choice, gains))
    beaten = {
        pair.second
        for pair in (one.seen_from(label) for one in _deciding(analysis) for label in (one.first, one.second))
        if pair.outcome == "better"
    }
    unbeaten = [one for one in qualified if one.choice.label not in beaten] or qualified
    return min(unbeaten, key=lambda one: len(one.choice.tunables), default=None)


def _deciding(analysis: Analysis) -> list[PairwiseComparison]:
    """The comparisons that the verdict rests on."""
    if analysis.goal is not None:
        return analysis.goal.comparisons
    deciding = {
        (one.workload, one.metric) for one in analysis.metric_verdicts if one.decides and not one.control
    }
    return [pair for pair in analysis.comparisons if (pair.workload, pair.metric) in deciding]


def against_default(
    default: SchedulerChoice, choice: SchedulerChoice, analysis: Analysis
) -> list[PairwiseComparison]:
    """A finalist against the default, by each question that the verdict rests on."""
    return [
        pair.seen_from(choice.label)
        for pair in _deciding(analysis)
        if {pair.first, pair.second} == {default.label, choice.label}
    ]
