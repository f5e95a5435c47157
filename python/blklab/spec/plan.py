"""From a specification to an ordered list of runs. Pure: the same specification gives the same plan.

The design is randomised complete blocks. Each block runs every scheduler once under every workload; within
a block and workload the schedulers come in random order, directly after one another, so that a machine
whose speed drifts does so for all of them alike. Blocks are drawn one by one, since samples or a budget
decide during the run how many there will be.

Where the samples decide, every second block runs in the reverse order of the one before, so that each pair of
schedulers has met in both orders after two blocks. Whatever favours the first or the second run of a block
(a cache that the first one fills, say) then shows as scatter from the start; in random order, three or four
blocks that happen to go the same way would pass for a large difference without any scatter.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from blklab.spec.experiment import ExperimentSpec
from blklab.spec.schedulers import SchedulerChoice
from blklab.spec.workloads import Workload


class CellKey(BaseModel):
    """The place of a run in the plan."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    block: int = Field(ge=0)
    sequence: int = Field(ge=0)
    """Position of the run in the whole experiment."""
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

        Runs that are left out, because their scheduler or workload is settled, keep their place in the
        sequence: a run's name does not depend on the schedulers that are still in the race.

        All schedulers of a block and workload share one seed, so they meet the same offsets, arrivals and
        device jitter: what differs between them is the scheduler (common random numbers).
        """
        cells: list[Cell] = []
        for workload, choices in self._order(number):
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

    def _order(self, number: int) -> list[tuple[Workload, list[SchedulerChoice]]]:
        mirrored = self.spec.stops_when_settled and number % 2 == 1
        drawn = number - 1 if mirrored else number
        order = random.Random(derive_seed(self.spec.seed, "order", drawn))  # noqa: S311 - not for secrets
        workloads = list(self.spec.workloads)
        order.shuffle(workloads)
        groups = []
        for workload in workloads:
            choices = list(self.spec.schedulers)
            order.shuffle(choices)
            groups.append((workload, choices[::-1] if mirrored else choices))
        return groups[::-1] if mirrored else groups

    def blocks(self, start: int = 0) -> Iterator[list[Cell]]:
        """Blocks without end, or up to the number that the specification fixes.

        In the order ``by-scheduler`` the runs of each scheduler come as one list, all schedulers in the order
        in which they were named; a run keeps the block that its seed comes from.
        """
        if self.spec.order == "by-scheduler":
            yield from self._by_scheduler()
            return
        number = start
        while self.spec.blocks is None or number < self.spec.blocks:
            yield self.block(number)
            number += 1

    def _by_scheduler(self) -> Iterator[list[Cell]]:
        blocks = self.spec.blocks
        if blocks is None:
            raise ValueError("the order by-scheduler needs a fixed number of blocks")
        sequence = 0
        for position, choice in enumerate(self.spec.schedulers):
            cells = []
            for number in range(blocks):
                for workload in self.spec.workloads:
                    key = CellKey(
                        block=number,
                        sequence=sequence,
                        position=position,
                        workload=workload.name,
                        scheduler=choice.label,
                        seed=derive_seed(self.spec.seed, "run", number, workload.name),
                    )
                    cells.append(Cell(key=key, scheduler=choice, workload=workload))
                    sequence += 1
            yield cells


def derive_seed(root: int, *path: str | int) -> int:
    """A 53-bit seed for a named purpose: independent of Python's version and of the order of calls.

    53 bits survive every JSON reader.
    """
    text = "/".join([str(root), *map(str, path)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 11
