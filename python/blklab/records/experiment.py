"""The record of an experiment: its specification, its target, its machine and every sample."""

from __future__ import annotations

from collections import Counter
from typing import Literal

from pydantic import BaseModel, ConfigDict, field_validator

from blklab.records.behaviour import Behaviour
from blklab.records.run_ids import check_run_id
from blklab.records.samples import MachineDescription, RunSample, TargetDescription
from blklab.spec.experiment import ExperimentSpec

RunState = Literal["running", "complete", "interrupted", "failed"]


class ExperimentRecord(BaseModel):
    """An experiment as the store keeps it; the analysis starts from it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run_id: str
    created_at: str
    """ISO 8601, UTC."""
    state: RunState
    blklab_version: str
    spec: ExperimentSpec
    """With its schedulers settled."""
    target: TargetDescription
    machine: MachineDescription
    samples: list[RunSample]
    """In the order in which the runs were made."""
    warnings: list[str] = []
    """The backend's remarks before the first run, as `blklab.quantities.notes` stores them."""
    behaviours: list[Behaviour] = []
    """Of runs that were observed after the others; no figure rests on these runs."""

    @field_validator("run_id")
    @classmethod
    def _names_a_run(cls, run_id: str) -> str:
        """It becomes a part of paths: of reports, journals and scratch files."""
        return check_run_id(run_id)

    @property
    def complete_blocks(self) -> int:
        """Number of blocks in which every planned run was made (failed ones included).

        If schedulers may leave early: the largest number of runs of any scheduler under any workload.
        """
        if self.spec.stops_when_settled:
            runs = Counter((sample.cell.workload, sample.cell.scheduler) for sample in self.samples)
            return max(runs.values(), default=0)
        cells = len(self.spec.schedulers) * len(self.spec.workloads)
        made: dict[int, int] = {}
        for sample in self.samples:
            made[sample.cell.block] = made.get(sample.cell.block, 0) + 1
        return sum(1 for count in made.values() if count == cells)

    def without_uncounted_slots(self) -> ExperimentRecord:
        """The same record without the slots that no value rests on: too short ones, and long ones."""
        kept = [sample for sample in self.samples if not self._is_uncounted(sample)]
        return self if len(kept) == len(self.samples) else self.model_copy(update={"samples": kept})

    def _is_uncounted(self, sample: RunSample) -> bool:
        decision = self.spec.slots.get(sample.cell.workload)
        if decision is None:
            return False
        if decision.slot_ns is None:
            return sample.slot is not None
        return sample.cell.block < decision.first_round or sample.is_long_slot

    def successes(self, scheduler: str | None = None, workload: str | None = None) -> list[RunSample]:
        """The runs that succeeded, in their order; of one scheduler (its label), one workload, or all."""
        return [
            sample
            for sample in self.samples
            if sample.status == "ok"
            and scheduler in (None, sample.cell.scheduler)
            and workload in (None, sample.cell.workload)
        ]
