"""The search: each scheduler has a proposer of its own, and those that do better get more trials.

First all schedulers take turns. Then half of each batch goes to the scheduler with the best candidate so far,
a quarter to the second best, and the others take turns in the rest: none is ever given up.

Batches have a fixed size, so the same seed gives the same trials on any number of processors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from blklab.labs.tuning.proposals import Proposal, Proposer
from blklab.labs.tuning.space import Space
from blklab.labs.tuning.trials import ModelTrials, Trial
from blklab.spec.plan import derive_seed

BLOCKS = 4
"""Blocks that a candidate runs in."""
BATCH = 8
_EQUAL_TRIALS = 8
"""Trials of each scheduler before the better ones get more."""

Progressed = Callable[[int, Trial | None], None]


def search(
    space: Space, model: ModelTrials, *, trials: int, seed: int, progressed: Progressed
) -> list[Trial]:
    """Tries candidates: first each scheduler with its defaults, then what is proposed.

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
    proposers = [
        Proposer(name, space, model.dimensions, seed=derive_seed(seed, name)) for name in space.settings
    ]
    made: dict[str, Trial] = {}
    batches = 0
    while len(made) < trials:
        so_far = list(made.values())
        progressed(len(made), best_of(so_far, model))
        # Behind them every scheduler once more, since some may have no candidate left.
        slots = [*_slots(proposers, so_far, model, batches), *proposers]
        proposals = _proposals(slots, set(made), min(BATCH, trials - len(made)))
        if not proposals:
            break
        batch = model.begin([one.choice for _, one in proposals], len(made))
        _run(batch, model, proposals)
        made |= {trial.choice.label: trial for trial in batch}
        batches += 1
    return list(made.values())


def best_of(trials: Sequence[Trial], model: ModelTrials) -> Trial | None:
    """The trial with the best score among those that ran in all blocks; None if none did."""
    whole = [trial for trial in trials if trial.error is None and not trial.pruned and trial.blocks]
    return max(whole, key=lambda trial: trial.score(model.dimensions), default=None)


def _slots(
    proposers: Sequence[Proposer], trials: Sequence[Trial], model: ModelTrials, batches: int
) -> list[Proposer]:
    """The proposer of each place in the next batch."""
    if len(trials) < _EQUAL_TRIALS * len(proposers):
        return [proposers[(len(trials) + place) % len(proposers)] for place in range(BATCH)]

    def best(proposer: Proposer) -> float:
        found = best_of([one for one in trials if one.choice.name == proposer.scheduler], model)
        return -float("inf") if found is None else found.score(model.dimensions)

    ranked = sorted(proposers, key=best, reverse=True)
    others = ranked[2:] or ranked
    rest = [others[(2 * batches + place) % len(others)] for place in range(BATCH // 4)]
    return [ranked[0]] * (BATCH // 2) + [ranked[min(1, len(ranked) - 1)]] * (BATCH // 4) + rest


def _proposals(slots: Sequence[Proposer], taken: set[str], most: int) -> list[tuple[Proposer, Proposal]]:
    found: list[tuple[Proposer, Proposal]] = []
    for proposer in slots:
        if len(found) == most:
            break
        proposal = proposer.propose(taken)
        if proposal is not None:
            taken.add(proposal.choice.label)
            found.append((proposer, proposal))
    return found


def _run(batch: Sequence[Trial], model: ModelTrials, proposals: Sequence[tuple[Proposer, Proposal]]) -> None:
    """Runs a batch block by block; those that lose clearly leave."""
    for block in range(BLOCKS):
        running = [trial for trial in batch if trial.error is None and not trial.pruned]
        model.run_block(running, block)
        for trial, (proposer, proposal) in zip(batch, proposals, strict=True):
            if trial in running and trial.error is None:
                trial.pruned = proposer.is_beaten(proposal, trial, block) and block + 1 < BLOCKS
    for trial, (proposer, proposal) in zip(batch, proposals, strict=True):
        proposer.tell(proposal, trial)


def _exhaustive(space: Space, model: ModelTrials, progressed: Progressed) -> list[Trial]:
    choices = list(space.choices())
    made: list[Trial] = []
    for start in range(0, len(choices), BATCH):
        progressed(len(made), best_of(made, model))
        batch = model.begin(choices[start : start + BATCH], start)
        for block in range(BLOCKS):
            model.run_block(batch, block)
        made += batch
    return made
