"""From a specification to an ordered list of runs. Pure: the same specification gives the same plan.

The design is randomised complete blocks. Each block runs every scheduler once under every workload; within
a block and workload the schedulers come in random order, directly after one another, so that a machine
whose speed drifts does so for all of them alike. Blocks are drawn one by one, since a budget decides
during the run how many there will be.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from blklab.scheduler_choice import SchedulerChoice
from blklab.spec import ExperimentSpec
from blklab.workloads import Workload


class CellKey(BaseModel):
    """Where a run stands in the plan."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    block: int = Field(ge=0)
    sequence: int = Field(ge=0)
    """Order in which the runs are made, over the whole experiment."""
    position: int = Field(ge=0)
    """Position of the scheduler within its block and workload."""
    workload: str
    scheduler: str
    """The label of the scheduler choice."""
    seed: int


@dataclass(frozen=True)
class Cell:
    """One run to be made."""

    key: CellKey
    scheduler: SchedulerChoice
    workload: Workload


class Plan:
    """The runs of an experiment, block by block."""

    def __init__(self, spec: ExperimentSpec) -> None:
        if not spec.schedulers:
            raise ValueError("a plan needs resolved schedulers")
        self.spec = spec

    @property
    def cells_per_block(self) -> int:
        """Number of runs in a block."""
        return len(self.spec.schedulers) * len(self.spec.workloads)

    def block(self, number: int) -> list[Cell]:
        """The runs of a block in the order in which they are to be made.

        All schedulers of a block and workload share one seed, so they meet the same offsets, arrivals and
        device jitter: what differs between them is the scheduler (common random numbers).
        """
        order = random.Random(derive_seed(self.spec.seed, "order", number))  # noqa: S311 - not for secrets
        workloads = list(self.spec.workloads)
        order.shuffle(workloads)
        cells: list[Cell] = []
        for workload in workloads:
            choices = list(self.spec.schedulers)
            order.shuffle(choices)
            seed = derive_seed(self.spec.seed, "run", number, workload.name)
            for position, choice in enumerate(choices):
                key = CellKey(
                    block=number,
                    sequence=number * self.cells_per_block + len(cells),
                    position=position,
                    workload=workload.name,
                    scheduler=choice.label,
                    seed=seed,
                )
                cells.append(Cell(key=key, scheduler=choice, workload=workload))
        return cells

    def blocks(self, start: int = 0) -> Iterator[list[Cell]]:
        """Blocks without end, or up to the number that the specification fixes."""
        number = start
        while self.spec.blocks is None or number < self.spec.blocks:
            yield self.block(number)
            number += 1


def derive_seed(root: int, *path: str | int) -> int:
    """A 53-bit seed for a named purpose: independent of Python's version and of the order of calls.

    53 bits survive every JSON reader.
    """
    text = "/".join([str(root), *map(str, path)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 11
