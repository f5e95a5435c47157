"""Sensitivity of the answer to the marked blocks: the same analysis with and without them."""

from __future__ import annotations

from dataclasses import dataclass

from blklab.analysis.disturbance import MachineFindings
from blklab.analysis.doubts import DisturbedAnswer
from blklab.analysis.overall import Verdict


@dataclass(frozen=True)
class Sensitivity:
    """The answer without the blocks that something on the machine may have spoiled."""

    marked_runs: int
    marked_blocks: list[int]
    """Numbers, from 0."""
    status: str
    best: list[str]
    same: bool
    """Whether the answer with them is the same, and so is the advice."""
    in_slots: bool
    """Whether they are rounds of slots."""


def compare_answers(verdict: Verdict, without: Verdict, machine: MachineFindings) -> Sensitivity:
    """The answer without the marked blocks, against the one with them.

    Args:
        verdict: The answer of all blocks.
        without: The answer of those that are not marked.
        machine: The disturbances that marked the others.
    """
    return Sensitivity(
        marked_runs=len(machine.disturbances),
        marked_blocks=machine.blocks,
        status=without.status,
        best=without.best,
        same=_answer(without) == _answer(verdict),
        in_slots=all(one.stretch is not None for one in machine.disturbances),
    )


def doubt_about(found: Sensitivity) -> DisturbedAnswer | None:
    """The doubt about an answer that would be another without the marked blocks; None if it would not."""
    if found.same:
        return None
    return DisturbedAnswer(len(found.marked_blocks), found.in_slots, found.status, found.best)


def _answer(verdict: Verdict) -> tuple[str, list[str], tuple[str, str | None] | None]:
    advised = verdict.recommendation
    advice = None if advised is None else (advised.action, advised.scheduler)
    return verdict.status, verdict.best, advice
