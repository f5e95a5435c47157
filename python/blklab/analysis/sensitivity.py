"""Sensitivity of the answer to the marked blocks: the same analysis with and without them."""

from __future__ import annotations

from dataclasses import dataclass

from blklab.analysis.disturbance import MachineFindings
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
    """Whether the answer with them is the same."""
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
        same=(without.status, without.best) == (verdict.status, verdict.best),
        in_slots=all(one.stretch is not None for one in machine.disturbances),
    )
