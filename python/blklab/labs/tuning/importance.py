"""The importance of settings: how much of the spread of the score each explains, by scheduler.

By PED-ANOVA (Watanabe, Bansal and Hutter, 2023): which settings tell the better trials from all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from blklab.labs.tuning.proposals import quiet_optuna
from blklab.labs.tuning.setting import TriedSetting
from blklab.labs.tuning.space import Space
from blklab.labs.tuning.trials import Dimension, Trial

if TYPE_CHECKING:
    import optuna

_FEWEST_TRIALS = 20
"""With fewer, importance would be chance."""


def importances(
    trials: Sequence[Trial], space: Space, dimensions: Sequence[Dimension]
) -> dict[str, dict[str, float]]:
    """The importance of each setting.

    Args:
        trials: Those of a search.
        space: Its space.
        dimensions: The parts of the score.

    Returns:
        By scheduler and setting: parts of 1. A scheduler with too few trials to tell is left out.
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
        if len(varied) < 2 or len(own) < _FEWEST_TRIALS:
            continue
        with quiet_optuna():
            study = optuna.create_study(direction="maximize")
            study.add_trials([_frozen(trial, varied, dimensions) for trial in own])
            explained = get_param_importances(study, evaluator=PedAnovaImportanceEvaluator())
        found[name] = {str(setting): float(part) for setting, part in explained.items()}
    return found


def _frozen(
    trial: Trial, settings: Sequence[TriedSetting], dimensions: Sequence[Dimension]
) -> optuna.trial.FrozenTrial:
    import optuna  # noqa: PLC0415 - slow to import

    places = {s.name: s.values.index(trial.choice.tunables.get(s.name)) for s in settings}
    return optuna.trial.create_trial(
        params=places,
        distributions={s.name: optuna.distributions.IntDistribution(0, len(s.values) - 1) for s in settings},
        value=trial.score(dimensions),
    )
