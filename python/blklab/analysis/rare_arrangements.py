"""Rare arrangements of models: blocks in which two schedulers compare quite otherwise than in the others.

A model draws anew in each block what nobody fixed: where files lie, when tasks start. Where one draw in
twenty makes a scheduler twice as slow, the mean over all arrangements depends on that one, and a few blocks
hold none of them or too many. No interval of few blocks can allow for arrangements that none of them has; so
blklab says so where the blocks show one, and how many would tell.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from blklab.analysis.questions import Question
from blklab.analysis.statistics.series import shared_values
from blklab.quantities.sample_units import BLOCKS
from blklab.records.experiment import ExperimentRecord
from blklab.spec.targets import ModelTarget, parse_target

FEWEST_BLOCKS = 8
"""Fewer do not show which arrangement is the usual one."""
ENOUGH_BLOCKS = 60
"""Hold an arrangement that one block in twenty has, with a probability of 95 %: 1 - 0.95^60."""
_LARGEST_PART = 0.25
"""Arrangements of a larger part of the blocks are not rare."""
_FAR = 10.0
"""Distance from the median, in medians of the blocks' distances, from which a block is unlike the others."""


@dataclass(frozen=True)
class RareArrangements:
    """A pair of schedulers under one workload, in blocks that are unlike the others."""

    workload: str
    metric: str
    pair: tuple[str, str]
    usual_ratio: float
    """First over second, the median of all blocks."""
    blocks: int
    rare: list[float]
    """The ratio in each block that is unlike the others."""

    @property
    def furthest(self) -> float:
        """The ratio that is most unlike the usual one."""
        return max(self.rare, key=lambda ratio: abs(math.log(ratio / self.usual_ratio)))


def rare_arrangements(question: Question, margin: float) -> RareArrangements | None:
    """The pair of a question's schedulers that rare arrangements change most; None if there is none.

    Args:
        question: With one value for each scheduler and block.
        margin: Of practical equality; what changes a ratio by less does not matter.
    """
    found = [
        one
        for first, second in itertools.combinations(question.values, 2)
        if (one := _of_pair(question, first, second, margin)) is not None
    ]
    return max(found, key=lambda one: abs(math.log(one.furthest / one.usual_ratio)), default=None)


def _of_pair(question: Question, first: str, second: str, margin: float) -> RareArrangements | None:
    one, other = shared_values(question.values[first], question.values[second])
    if len(one) < FEWEST_BLOCKS:
        return None
    logs = np.log(np.asarray(one) / np.asarray(other))
    usual = float(np.median(logs))
    distances = np.abs(logs - usual)
    limit = max(math.log1p(margin), _FAR * float(np.median(distances)))
    rare = [math.exp(value) for value in logs[distances > limit]]
    if not rare or len(rare) > _LARGEST_PART * len(one):
        return None
    metric = question.metric.name
    return RareArrangements(question.workload, metric, (first, second), math.exp(usual), len(one), rare)


def unsettled_arrangements(record: ExperimentRecord, questions: Sequence[Question]) -> list[RareArrangements]:
    """One for each workload of a model whose rare arrangements change what decides it.

    None where arrangements are fixed, or where enough blocks were run.
    """
    is_model = isinstance(parse_target(record.target.target), ModelTarget)
    if not is_model or record.spec.arrangement != "drawn":
        return []
    of_runs = [question for question in questions if question.unit == BLOCKS]
    found = [rare_arrangements(question, record.spec.margin) for question in of_runs]
    return [one for one in found if one is not None and one.blocks < ENOUGH_BLOCKS]
