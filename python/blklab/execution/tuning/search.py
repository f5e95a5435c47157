"""The search: Optuna proposes candidates, the model tries them.

Candidates are drawn by a tree-structured Parzen estimator (Bergstra and others, *Algorithms for
hyper-parameter optimization*, 2011) that knows which settings belong to which scheduler. With one dimension,
a candidate that loses against the best so far in the first blocks is pruned (Wilcoxon's signed-rank test on
the blocks that both have). With several dimensions there is no single best to lose against, and every
candidate runs in all blocks.

Proposals come in batches of a fixed size, so the same seed gives the same trials on any number of processors.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from blklab.execution.tuning.space import Setting, Space, chosen
from blklab.execution.tuning.trials import Dimension, ModelTrials, Trial
from blklab.spec.schedulers import SchedulerChoice

if TYPE_CHECKING:
    import optuna

BLOCKS = 4
"""Blocks that a candidate runs in."""
BATCH = 8
_FIRST_DRAWS = 24
"""Candidates that are drawn blindly, before the estimator has something to go by."""
_SCHEDULER = "scheduler"


def search(
    space: Space,
    model: ModelTrials,
    *,
    trials: int,
    seed: int,
    progressed: Callable[[int, Trial | None], None],
) -> list[Trial]:
    """Tries candidates: first each scheduler with its defaults, then what the estimator proposes.

    Args:
        space: All candidates.
        model: Runs them.
        trials: Different candidates to try, at most.
        seed: Of the proposals.
        progressed: Called before each batch with the number of trials made and the best so far.

    Returns:
        The trials, in order. A space with no more candidates than that is tried in full.

    Raises:
        RunFailedError: if the default fails on the model.
    """
    if space.size <= trials:
        return _exhaustive(space, model, progressed)
    study = _study(model, seed)
    for name in space.settings:
        places = {_parameter(name, one.name): one.values.index(None) for one in space.settings[name]}
        study.enqueue_trial({_SCHEDULER: name} | places)
    made: dict[str, Trial] = {}
    asked = 0
    # Once the estimator repeats itself, more asking gives nothing new.
    while len(made) < trials and asked < 4 * trials:
        progressed(len(made), best_of(list(made.values()), model))
        drawn = [study.ask() for _ in range(BATCH)]
        asked += len(drawn)
        choices = [_suggested(one, space) for one in drawn]
        fresh = list({one.label: one for one in choices if one.label not in made}.values())
        batch = model.begin(fresh[: trials - len(made)], len(made))
        owners = {choice.label: one for one, choice in zip(drawn, choices, strict=True)}
        _run(batch, model, owners)
        made |= {trial.choice.label: trial for trial in batch}
        for one, choice in zip(drawn, choices, strict=True):
            _tell(study, one, made.get(choice.label), model)
    return list(made.values())


def best_of(trials: Sequence[Trial], model: ModelTrials) -> Trial | None:
    """The trial with the best score among those that ran in all blocks; None if none did."""
    whole = [trial for trial in trials if trial.error is None and not trial.pruned and trial.blocks]
    return max(whole, key=lambda trial: trial.score(model.dimensions), default=None)


def importances(
    trials: Sequence[Trial], space: Space, dimensions: Sequence[Dimension]
) -> dict[str, dict[str, float]]:
    """How much of the spread of the score each setting explains, by scheduler.

    By PED-ANOVA (Watanabe, Bansal and Hutter, 2023): which settings tell the better trials from all.

    Args:
        trials: Those of a search.
        space: Its space.
        dimensions: What the score is made of.

    Returns:
        Parts of 1 by setting; a scheduler with too few trials to tell is left out.
    """
    import optuna  # noqa: PLC0415 - slow to import
    from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances  # noqa: PLC0415

    found: dict[str, dict[str, float]] = {}
    for name, settings in space.settings.items():
        own = [
            trial for trial in trials if trial.choice.name == name and trial.error is None and trial.blocks
        ]
        varied = [
            setting
            for setting in settings
            if len({trial.choice.tunables.get(setting.name) for trial in own}) > 1
        ]
        if len(varied) < 2 or len(own) < _FIRST_DRAWS:
            continue
        with _quiet():
            study = optuna.create_study(direction="maximize")
            study.add_trials([_frozen(trial, varied, dimensions) for trial in own])
            explained = get_param_importances(study, evaluator=PedAnovaImportanceEvaluator())
        found[name] = {str(setting): float(part) for setting, part in explained.items()}
    return found


def _frozen(
    trial: Trial, settings: Sequence[Setting], dimensions: Sequence[Dimension]
) -> optuna.trial.FrozenTrial:
    import optuna  # noqa: PLC0415 - slow to import

    places = {s.name: s.values.index(trial.choice.tunables.get(s.name)) for s in settings}
    return optuna.trial.create_trial(
        params=places,
        distributions={s.name: optuna.distributions.IntDistribution(0, len(s.values) - 1) for s in settings},
        value=trial.score(dimensions),
    )


def _exhaustive(
    space: Space, model: ModelTrials, progressed: Callable[[int, Trial | None], None]
) -> list[Trial]:
    choices = list(space.choices())
    made: list[Trial] = []
    for start in range(0, len(choices), BATCH):
        progressed(len(made), best_of(made, model))
        batch = model.begin(choices[start : start + BATCH], start)
        for block in range(BLOCKS):
            model.run_block(batch, block)
        made += batch
    return made


def _run(batch: Sequence[Trial], model: ModelTrials, owners: Mapping[str, optuna.Trial]) -> None:
    """Runs a batch block by block; those that lose clearly leave."""
    prunes = len(model.dimensions) == 1
    for block in range(BLOCKS):
        running = [trial for trial in batch if trial.error is None and not trial.pruned]
        model.run_block(running, block)
        for trial in running:
            if trial.error is not None or not prunes:
                continue
            owner = owners[trial.choice.label]
            values = trial.gains.get(model.dimensions[0].name, [])
            if len(values) == block + 1:
                owner.report(values[-1], block)
                with _quiet():
                    trial.pruned = block + 1 < BLOCKS and owner.should_prune()


def _study(model: ModelTrials, seed: int) -> optuna.Study:
    import optuna  # noqa: PLC0415 - slow to import

    with _quiet():
        sampler = optuna.samplers.TPESampler(
            seed=seed % (1 << 32),
            multivariate=True,
            group=True,
            constant_liar=True,
            n_startup_trials=_FIRST_DRAWS,
        )
        # At this level the test can tell something from two blocks on.
        pruner = optuna.pruners.WilcoxonPruner(p_threshold=0.3, n_startup_steps=2)
        return optuna.create_study(
            sampler=sampler, pruner=pruner, directions=["maximize"] * len(model.dimensions)
        )


def _suggested(drawn: optuna.Trial, space: Space) -> SchedulerChoice:
    with _quiet():
        name = drawn.suggest_categorical(_SCHEDULER, list(space.settings))
        places = {
            setting.name: setting.values[
                drawn.suggest_int(_parameter(name, setting.name), 0, len(setting.values) - 1)
            ]
            for setting in space.settings[name]
        }
    return chosen(name, places)


def _tell(study: optuna.Study, drawn: optuna.Trial, trial: Trial | None, model: ModelTrials) -> None:
    """Reports a result; a candidate that was proposed again gets its first one."""
    import optuna  # noqa: PLC0415 - slow to import

    with _quiet():
        if trial is None or trial.error is not None or not trial.blocks:
            study.tell(drawn, state=optuna.trial.TrialState.FAIL)
        elif trial.pruned:
            # The estimator takes the last reported value.
            drawn.report(trial.score(model.dimensions), BLOCKS)
            study.tell(drawn, state=optuna.trial.TrialState.PRUNED)
        elif len(model.dimensions) == 1:
            study.tell(drawn, trial.score(model.dimensions))
        else:
            study.tell(drawn, [trial.gain(one.name) for one in model.dimensions])


def _parameter(scheduler: str, setting: str) -> str:
    return f"{scheduler}:{setting}"


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps Optuna's log, and its notes on experimental parts (we know of them), off the terminal."""
    import optuna  # noqa: PLC0415 - slow to import

    optuna.logging.set_verbosity(logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        yield
