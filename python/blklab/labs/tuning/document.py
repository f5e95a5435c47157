"""A tuning as JSON, ``blklab.tune/1``."""

from __future__ import annotations

import math
import shlex
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from blklab.analysis.comparison import PairwiseComparison
from blklab.labs.tuning.trials import Dimension, Trial
from blklab.labs.tuning.tuning import Tuning, against_default
from blklab.report.documents.comparison import CompareDocument, compare_document
from blklab.spec.targets import PathTarget


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, populate_by_name=True)


class SettingPart(_Part):
    """A setting that was varied."""

    name: str
    values: list[str | None]
    """In order; None is the target's default."""
    default: str
    importance: float | None
    """Part of the spread of scores that it explains, among this scheduler's settings; None if unknown."""


class SearchedSchedulerPart(_Part):
    """A scheduler with its settings."""

    scheduler: str
    settings: list[SettingPart]


class TrialPart(_Part):
    """A candidate on the model."""

    number: int
    scheduler: str
    settings: dict[str, str]
    """Those that differ from the default."""
    score: float | None
    """How much better than the default, all dimensions together, as a ratio; None if it never ran."""
    ratios: dict[str, float]
    """The same by dimension."""
    blocks: int
    pruned: bool
    error: str | None
    """The reason why the model, or with a finalist the target, refused it."""


class GainPart(_Part):
    """The recommended candidate against the default, as the target measured it."""

    workload: str
    metric: str
    ratio: float
    ci_low: float | None
    ci_high: float | None
    n: int
    outcome: str


class FinalistPart(TrialPart):
    """A candidate that met the default on the target, reduced to the settings that it needs."""

    measured: list[GainPart]
    """By each question that the verdict rests on."""


class ConfirmedCandidatePart(_Part):
    """The candidate that the target confirmed."""

    choice: str
    """In the grammar of schedulers, as `blklab apply` takes it."""
    gains: list[GainPart]
    apply_command: str | None
    """None if the target is no disk of this machine."""
    compare_command: str | None = None
    """Of a model: compares the choice with the default on a disk, whose directory is to be put in."""


class TuneDocument(_Part):
    """The document that `blklab tune --json` prints."""

    schema_: Literal["blklab.tune/1"] = Field(default="blklab.tune/1", alias="schema")
    target: str
    model: str
    default: str
    seed: int
    candidates: int
    """Candidates that there are."""
    simulated_runs: int
    dimensions: list[str]
    searched: list[SearchedSchedulerPart]
    trials: list[TrialPart]
    finalists: list[FinalistPart]
    confirmation: CompareDocument | None
    """None if the model found nothing better than the default."""
    recommendation: ConfirmedCandidatePart | None
    """None if nothing beats the default."""

    @staticmethod
    def of(tuning: Tuning) -> TuneDocument:
        """Puts a tuning into the documented form."""
        confirmation = None
        if tuning.record is not None and tuning.analysis is not None:
            confirmation = compare_document(tuning.record, tuning.analysis)
        return TuneDocument(
            target=tuning.request.experiment.target,
            model=tuning.model,
            default=tuning.default.without_label,
            seed=tuning.request.experiment.seed,
            candidates=tuning.space.size,
            simulated_runs=tuning.simulated_runs,
            dimensions=[one.name for one in tuning.dimensions],
            searched=[
                SearchedSchedulerPart(
                    scheduler=name,
                    settings=[
                        SettingPart(
                            name=one.name,
                            values=list(one.values),
                            default=one.default,
                            importance=tuning.importances.get(name, {}).get(one.name),
                        )
                        for one in settings
                    ],
                )
                for name, settings in tuning.space.settings.items()
            ],
            trials=[_trial_part(one, tuning.dimensions) for one in tuning.trials],
            finalists=[_finalist_part(one, tuning) for one in tuning.finalists],
            confirmation=confirmation,
            recommendation=_recommendation_part(tuning),
        )


def _trial_part(trial: Trial, dimensions: list[Dimension]) -> TrialPart:
    return TrialPart(
        number=trial.number,
        scheduler=trial.choice.name,
        settings=trial.choice.tunables,
        score=math.exp(trial.score(dimensions)) if trial.blocks else None,
        ratios={one.name: math.exp(trial.gain(one.name)) for one in dimensions if trial.gains.get(one.name)},
        blocks=trial.blocks,
        pruned=trial.pruned,
        error=trial.error,
    )


def _finalist_part(trial: Trial, tuning: Tuning) -> FinalistPart:
    measured = (
        [] if tuning.analysis is None else against_default(tuning.default, trial.choice, tuning.analysis)
    )
    return FinalistPart(
        **vars(_trial_part(trial, tuning.dimensions)), measured=[_gain_part(pair) for pair in measured]
    )


def _recommendation_part(tuning: Tuning) -> ConfirmedCandidatePart | None:
    found = tuning.recommendation
    if found is None:
        return None
    target = tuning.request.experiment.parsed_target
    is_disk = isinstance(target, PathTarget)
    words = ["blklab", "apply", found.choice.without_label, "--device", tuning.request.experiment.target]
    return ConfirmedCandidatePart(
        choice=found.choice.without_label,
        gains=[_gain_part(pair) for pair in found.gains],
        apply_command=shlex.join(words) if is_disk else None,
        compare_command=None if is_disk else _on_a_disk(tuning, found.choice.without_label),
    )


def _on_a_disk(tuning: Tuning, choice: str) -> str:
    """The command that compares a choice with the default on a disk."""
    words = ["blklab", "compare", "DIRECTORY", "-s", f"{tuning.default.without_label},{choice}"]
    for workload in tuning.request.experiment.workloads:
        words += ["-w", workload.source]
    return shlex.join(words)


def _gain_part(pair: PairwiseComparison) -> GainPart:
    return GainPart(
        workload=pair.workload,
        metric=pair.metric,
        ratio=pair.ratio,
        ci_low=pair.ci_low,
        ci_high=pair.ci_high,
        n=pair.n,
        outcome=pair.outcome,
    )
