"""Candidates of one scheduler, proposed by Optuna from those that were tried.

They are drawn by a tree-structured Parzen estimator (Bergstra and others, *Algorithms for hyper-parameter
optimization*, 2011). In a space of few values it soon proposes what it has seen; then a neighbour of that
proposal is taken. With one dimension, a candidate that loses against the best so far in the first blocks is
pruned (Wilcoxon's signed-rank test on the blocks that both have). With several dimensions there is no single
best to lose against, and every candidate runs in all blocks.
"""

from __future__ import annotations

import itertools
import logging
import math
import random
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from blklab.labs.tuning.space import Space
from blklab.labs.tuning.trials import Dimension, Trial
from blklab.spec.schedulers import SchedulerChoice

if TYPE_CHECKING:
    import optuna

_FIRST_DRAWS = 10
"""Candidates that are drawn blindly, before the estimator has something to go by."""
_ATTEMPTS = 40
"""Neighbours that are looked at for one that was not tried."""
_MOST_COUNTED_OUT = 5000
"""Candidates of a scheduler that are looked through when its neighbours are all taken."""
_PRUNING_LEVEL = 0.3
"""At this level the test can tell something from two blocks on."""


@dataclass(frozen=True)
class Proposal:
    """A candidate, and Optuna's record of it."""

    choice: SchedulerChoice
    drawn: optuna.Trial


class Proposer:
    """Proposes candidates of one scheduler."""

    def __init__(self, scheduler: str, space: Space, dimensions: Sequence[Dimension], *, seed: int) -> None:
        """Begins with the defaults, which are proposed first.

        Args:
            scheduler: The scheduler.
            space: Its settings are among these; none for a scheduler with a single candidate.
            dimensions: The parts of the score.
            seed: Of the proposals.
        """
        import optuna  # noqa: PLC0415 - slow to import

        self.scheduler = scheduler
        self._space = space
        self._settings = settings = space.settings[scheduler]
        self._dimensions = dimensions
        self._random = random.Random(seed)  # noqa: S311 - not for secrets
        with quiet_optuna():
            sampler = optuna.samplers.TPESampler(
                seed=seed % (1 << 32),
                multivariate=True,
                constant_liar=True,
                n_startup_trials=_FIRST_DRAWS,
            )
            pruner = optuna.pruners.WilcoxonPruner(p_threshold=_PRUNING_LEVEL, n_startup_steps=2)
            self._study = optuna.create_study(
                sampler=sampler, pruner=pruner, directions=["maximize"] * len(dimensions)
            )
        self._study.enqueue_trial({one.name: one.values.index(None) for one in settings})

    def propose(self, taken: Collection[str]) -> Proposal | None:
        """A candidate whose label is not taken; None if none was found."""
        proposal, places = self._draw()
        if proposal.choice.label not in taken:
            return proposal
        self._drop(proposal)
        for near in self._others(places):
            if self._choice(near).label not in taken:
                self._study.enqueue_trial(near)
                return self._draw()[0]
        return None

    def is_beaten(self, proposal: Proposal, trial: Trial, block: int) -> bool:
        """Reports a block; tells whether the candidate has lost so clearly that it need not run on."""
        values = trial.gains.get(self._dimensions[0].name, [])
        if len(self._dimensions) > 1 or len(values) != block + 1:
            return False
        proposal.drawn.report(values[-1], block)
        with quiet_optuna():
            return proposal.drawn.should_prune()

    def tell(self, proposal: Proposal, trial: Trial) -> None:
        """Reports the end of a trial."""
        import optuna  # noqa: PLC0415 - slow to import

        if trial.error is not None or not trial.blocks:
            self._drop(proposal)
            return
        with quiet_optuna():
            if trial.pruned:
                # The estimator takes the last reported value.
                proposal.drawn.report(trial.score(self._dimensions), trial.blocks)
                self._study.tell(proposal.drawn, state=optuna.trial.TrialState.PRUNED)
            elif len(self._dimensions) == 1:
                self._study.tell(proposal.drawn, trial.score(self._dimensions))
            else:
                self._study.tell(proposal.drawn, [trial.gain(one.name) for one in self._dimensions])

    def _draw(self) -> tuple[Proposal, dict[str, int]]:
        with quiet_optuna():
            drawn = self._study.ask()
            places = {one.name: drawn.suggest_int(one.name, 0, len(one.values) - 1) for one in self._settings}
        return Proposal(self._choice(places), drawn), places

    def _drop(self, proposal: Proposal) -> None:
        import optuna  # noqa: PLC0415 - slow to import

        with quiet_optuna():
            self._study.tell(proposal.drawn, state=optuna.trial.TrialState.FAIL)

    def _others(self, places: Mapping[str, int]) -> Iterator[dict[str, int]]:
        """Neighbours, ever farther away; at the end every candidate, if they can be counted out."""
        for attempt in range(_ATTEMPTS):
            yield self._neighbour(places, 1 + attempt // (_ATTEMPTS // 4))
        if math.prod(len(one.values) for one in self._settings) <= _MOST_COUNTED_OUT:
            names = [one.name for one in self._settings]
            every = list(itertools.product(*(range(len(one.values)) for one in self._settings)))
            self._random.shuffle(every)
            yield from (dict(zip(names, one, strict=True)) for one in every)

    def _neighbour(self, places: Mapping[str, int], changes: int) -> dict[str, int]:
        """The candidate with some of its settings at the value before or after."""
        near = dict(places)
        for setting in self._random.sample(list(self._settings), min(changes, len(self._settings))):
            place = near[setting.name] + self._random.choice((-1, 1))
            near[setting.name] = place % len(setting.values)
        return near

    def _choice(self, places: Mapping[str, int]) -> SchedulerChoice:
        values = {one.name: one.values[places[one.name]] for one in self._settings}
        return self._space.choice(self.scheduler, values)


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """Keeps Optuna's log, and its notes on experimental parts (we know of them), off the terminal."""
    import optuna  # noqa: PLC0415 - slow to import

    optuna.logging.set_verbosity(logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        yield
