"""From the trials of a search to the few candidates that the target has to confirm."""

from __future__ import annotations

import math
from collections.abc import Sequence

from blklab.labs.tuning.search import BLOCKS
from blklab.labs.tuning.space import Space
from blklab.labs.tuning.trials import ModelTrials, Trial
from blklab.spec.schedulers import SchedulerChoice

MOST_FINALISTS = 3
"""With more the confirmation would have less time for each."""
LEAST_GAIN = 0.005
"""A candidate that gains less on the model is not worth the target's time."""
_MOST_REDUCED = 8
"""Candidates that are reduced at most: those behind them are seldom of another kind."""
_SIMPLER = 4
"""A setting is dropped if the candidate loses less without it than this part of the margin, as a divisor."""


def finalists(
    trials: Sequence[Trial],
    space: Space,
    model: ModelTrials,
    default: SchedulerChoice,
    *,
    margin: float,
) -> list[Trial]:
    """The best candidates, each reduced to the settings that it needs.

    A search changes every setting a little, and most of that does nothing. So each setting is put back to its
    default, one after the other, and stays there if the model hardly notices.

    Args:
        trials: Those of a search.
        space: Its space.
        model: Runs the reduced candidates.
        default: What they are compared with; never a finalist.
        margin: Differences up to this fraction do not matter.

    Returns:
        At most `MOST_FINALISTS`, different from each other, the best first; empty if nothing gains on the
        model.
    """
    found: dict[tuple[str, frozenset[str]], Trial] = {}
    whole = [one for one in trials if one.error is None and one.blocks == BLOCKS and not one.pruned]
    # Of equals the one with fewest changes first, which takes least to reduce.
    ranked = sorted(whole, key=lambda one: (-round(one.score(model.dimensions), 3), len(one.choice.tunables)))
    reductions = 0
    for trial in ranked:
        if trial.score(model.dimensions) < LEAST_GAIN or len(found) == MOST_FINALISTS:
            break
        if any(_is_variant(trial.choice, one.choice) for one in found.values()):
            continue
        reductions += 1
        if reductions > _MOST_REDUCED:
            break
        reduced = simplified(trial, space, model, margin=margin)
        if reduced.choice.without_label != default.without_label:
            found.setdefault(_kind(reduced.choice), reduced)
    return sorted(found.values(), key=lambda one: -one.score(model.dimensions))


def simplified(trial: Trial, space: Space, model: ModelTrials, *, margin: float) -> Trial:
    """The candidate with as few changed settings as reach nearly the same score."""
    allowed = math.log1p(margin) / _SIMPLER
    least = trial.score(model.dimensions) - allowed
    current = trial
    for name in space.changed(trial.choice):
        left = space.changed(current.choice)
        if left.pop(name, None) is None:
            continue  # it went with the setting that it needs
        (shorter,) = model.begin([space.choice(trial.choice.name, left)], trial.number)
        for block in range(BLOCKS):
            model.run_block([shorter], block)
        if shorter.error is None and shorter.score(model.dimensions) >= least:
            current = shorter
    return current


def _kind(choice: SchedulerChoice) -> tuple[str, frozenset[str]]:
    """The scheduler and the settings that are changed, whatever to: finalists are to differ in more."""
    return choice.name, frozenset(choice.tunables)


def _is_variant(choice: SchedulerChoice, found: SchedulerChoice) -> bool:
    """Whether a candidate has all the settings that a finalist needs, so that it would reduce to it again."""
    return choice.name == found.name and found.tunables.items() <= choice.tunables.items()
