"""Blocks that something else on the machine may have spoiled. They are marked, never dropped.

A comparison within a block suffers if an event hit one of its runs and not the others. So a run counts as
disturbed if an event exceeds the typical value of the same workload in this experiment (the median of its
runs) by more than a floor. An event that is the same in all runs (a hypervisor that always takes its part,
the load's own pressure on the CPU, a file system's journal) marks no block, but its typical value is reported
if it exceeds the floor.

Each floor is chosen so that anything below it changes a result by less than usually matters (2 %, the default
margin) or has another cause than the load:

* 2 % of CPU time stolen; 2 % of the time under memory pressure: the load itself hardly ever waits for memory;
* 10 % of the time under CPU pressure: two tasks that share a CPU for a tenth of the run;
* reads and writes of others on the disk: 5 % of what the load moved (journal and metadata add to writes, in
  all runs alike);
* 5 % lower CPU frequency, 10 °C more: the signs of throttling and of a change of governor;
* a run that took 5 s more than the others took beyond its time: a disk that hangs and comes back.

A line of the kernel's log that tells of trouble with the disk (a timeout, a reset, an error) marks its run
whatever the others had: no disk in order writes one.

Pressure on I/O is recorded but marks no block: most of it is the load's own.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from blklab.quantities.units import NS_PER_SECOND
from blklab.records.experiment import ExperimentRecord
from blklab.records.machine_events import MachineEvents
from blklab.records.samples import RunSample

SymptomName = Literal[
    "steal",
    "memory pressure",
    "CPU pressure",
    "foreign reads",
    "foreign writes",
    "frequency",
    "temperature",
    "overrun",
]


@dataclass(frozen=True)
class Symptom:
    """One kind of event as a number per run, and the floor beyond which it counts."""

    name: SymptomName
    measure: Callable[[MachineEvents], float | None]
    floor: float
    higher_is_worse: bool = True
    relative: bool = False
    """Whether the floor is a fraction of the typical value."""
    typical_matters: bool = True
    """Whether a typical value beyond the floor is reported."""

    def excess(self, value: float, typical: float) -> float:
        """Distance beyond the floor; a disturbance if above 0."""
        departure = value - typical if self.higher_is_worse else typical - value
        return departure - self.floor * (typical if self.relative else 1.0)


def _foreign_reads(events: MachineEvents) -> float | None:
    traffic = events.traffic
    return None if traffic is None else _foreign(traffic.read_bytes, traffic.own_read_bytes, events)


def _foreign_writes(events: MachineEvents) -> float | None:
    traffic = events.traffic
    return None if traffic is None else _foreign(traffic.written_bytes, traffic.own_written_bytes, events)


def _foreign(total_bytes: int, own_bytes: int, events: MachineEvents) -> float | None:
    """Bytes of other programs over all bytes of the load, in both directions."""
    traffic = events.traffic
    own = 0 if traffic is None else traffic.own_read_bytes + traffic.own_written_bytes
    return max(0, total_bytes - own_bytes) / own if own else None


SYMPTOMS = (
    Symptom("steal", lambda events: events.steal_fraction, 0.02),
    Symptom("memory pressure", lambda events: events.pressure("memory_some"), 0.02),
    Symptom("CPU pressure", lambda events: events.pressure("cpu_some"), 0.10, typical_matters=False),
    Symptom("foreign reads", _foreign_reads, 0.05),
    Symptom("foreign writes", _foreign_writes, 0.05, typical_matters=False),
    Symptom(
        "frequency",
        lambda events: events.frequency_mhz,
        0.05,
        higher_is_worse=False,
        relative=True,
        typical_matters=False,
    ),
    Symptom("temperature", lambda events: events.temperature_celsius, 10.0, typical_matters=False),
    Symptom("overrun", lambda events: events.overrun_ns / NS_PER_SECOND, 5.0),
)


@dataclass(frozen=True)
class Excess:
    """A symptom beyond its floor, with its value in a typical run of the workload."""

    symptom: SymptomName
    value: float
    typical: float


@dataclass(frozen=True)
class TypicalEvent:
    """A symptom that exceeds its floor in all runs of a workload alike."""

    workload: str
    symptom: SymptomName
    value: float


@dataclass(frozen=True)
class Disturbance:
    """A run that something disturbed."""

    block: int
    workload: str
    scheduler: str
    trouble: str | None
    """The line of the kernel's log that tells of trouble with the disk, if there is one."""
    excesses: list[Excess]
    stretch: int | None = None
    """Of a slot, the number of its stretch."""


@dataclass(frozen=True)
class MachineFindings:
    """The disturbances that the machine's events show."""

    watched: int
    """Runs that have events."""
    disturbances: list[Disturbance]
    typical: list[TypicalEvent]

    @property
    def marked(self) -> set[tuple[int, str]]:
        """Block and workload of every disturbed run."""
        return {(one.block, one.workload) for one in self.disturbances}

    @property
    def blocks(self) -> list[int]:
        """Numbers of the blocks that hold a disturbed run."""
        return sorted({one.block for one in self.disturbances})


def machine_findings(record: ExperimentRecord) -> MachineFindings:
    """Examines the events of all successful runs, workload by workload."""
    watched = [sample for sample in record.samples if sample.status == "ok" and sample.events is not None]
    excesses: dict[int, list[Excess]] = {sample.cell.sequence: [] for sample in watched}
    typical_ones = []
    for workload in record.spec.workloads:
        runs = [sample for sample in watched if sample.cell.workload == workload.name]
        for symptom in SYMPTOMS:
            measured = _measured(runs, symptom)
            if not measured:
                continue
            typical = statistics.median(measured.values())
            if symptom.typical_matters and symptom.higher_is_worse and typical > symptom.floor:
                typical_ones.append(TypicalEvent(workload.name, symptom.name, typical))
            for sequence, value in measured.items():
                if symptom.excess(value, typical) > 0:
                    excesses[sequence].append(Excess(symptom.name, value, typical))
    found = [
        Disturbance(
            sample.cell.block,
            sample.cell.workload,
            sample.cell.scheduler,
            None if sample.events is None else sample.events.trouble,
            excesses[sample.cell.sequence],
            None if sample.slot is None else sample.slot.stretch,
        )
        for sample in watched
        if excesses[sample.cell.sequence] or (sample.events is not None and sample.events.trouble is not None)
    ]
    return MachineFindings(len(watched), found, typical_ones)


def without_marked(record: ExperimentRecord, findings: MachineFindings) -> ExperimentRecord:
    """The record without the runs of marked blocks (of the workload concerned)."""
    marked = findings.marked
    kept = [sample for sample in record.samples if (sample.cell.block, sample.cell.workload) not in marked]
    return record.model_copy(update={"samples": kept})


def _measured(runs: Sequence[RunSample], symptom: Symptom) -> dict[int, float]:
    """By sequence number."""
    values = {}
    for sample in runs:
        value = None if sample.events is None else symptom.measure(sample.events)
        if value is not None:
            values[sample.cell.sequence] = value
    return values
