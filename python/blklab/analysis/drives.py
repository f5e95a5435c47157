"""Drives and their experiments, as a verdict for a class takes them: each drive counts once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from blklab.analysis.stored_series import StoredSeries, same_work
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import MachineDescription, TargetDescription
from blklab.spec.drive_classes import kind_of, known_rotational
from blklab.spec.workloads import Workload


@dataclass(frozen=True)
class Drive:
    """A drive of the fleet."""

    identity: str
    """Tells it apart from all others."""
    name: str
    """For people: ``alpha: nvme0n1``."""
    host: str
    """The machine's name; empty for a model."""
    model: str
    kind: str
    """One of `blklab.spec.drive_classes.KINDS`; empty for others and for models."""
    rotational: bool | None
    """None if unknown, as for a virtual disk that says it rotates."""
    size_bytes: int
    modelled: bool = False
    """Whether it is a modelled disk, of which no host has one."""


def drive_of(target: TargetDescription, machine: MachineDescription) -> Drive | None:
    """The drive that an experiment tested; None if it tested several together."""
    if len(target.disks) != 1:
        return None
    (disk,) = target.disks
    on_host = target.backend == "host"
    host = machine.host if on_host else ""
    # A drive without a name of its own is known by its place, a model by its parameters.
    place = f"{host}/{disk.name}/{disk.model}/{disk.size_bytes}" if on_host else target.target
    name = f"{host}: {disk.name}" if host else disk.name
    return Drive(
        identity=disk.identity or place,
        name=name if on_host else target.target,
        host=host,
        model=disk.model,
        kind=kind_of(disk.name) if on_host else "",
        rotational=known_rotational(disk.name, rotational=disk.rotational) if on_host else disk.rotational,
        size_bytes=disk.size_bytes,
        modelled=not on_host,
    )


class DriveExperiment(StoredSeries):
    """One experiment on one drive."""

    def __init__(self, drive: Drive, record: ExperimentRecord) -> None:
        super().__init__(record)
        self.drive = drive

    def under(self, workloads: Collection[str]) -> DriveExperiment:
        """The same experiment as if it had had only these workloads."""
        spec = self.record.spec
        kept = [workload for workload in spec.workloads if workload.name in workloads]
        slots = {name: decision for name, decision in spec.slots.items() if name in workloads}
        fewer = spec.model_copy(update={"workloads": kept, "slots": slots})
        return DriveExperiment(self.drive, self.record.model_copy(update={"spec": fewer}))


LeftOutReason = Literal["several drives", "running", "repeated", "other text", "models"]
"""``several drives``: tested together. ``models``: on modelled disks, where the class has real ones.
``repeated``: later on the same drive. ``other text``: the workload of that name was another one."""


@dataclass(frozen=True)
class LeftOut:
    """Experiments that do not count."""

    reason: LeftOutReason
    runs: Sequence[str]
    """By name; of another text, each with the workload."""


@dataclass(frozen=True)
class Fleet:
    """The experiments that count, and the reasons for those that do not."""

    experiments: Mapping[str, Sequence[DriveExperiment]]
    """By workload, one for each drive."""
    workloads: Mapping[str, Workload]
    """As the newest experiment has them."""
    left_out: Sequence[LeftOut]

    @property
    def drives(self) -> list[Drive]:
        """All drives, in the order of their names."""
        found = {one.drive.identity: one.drive for several in self.experiments.values() for one in several}
        return sorted(found.values(), key=lambda drive: (drive.name, drive.identity))


def fleet_of(records: Iterable[ExperimentRecord]) -> Fleet:
    """The newest experiment of each drive under each workload.

    An experiment is left out if it tested several drives together or is still running. A workload is the same
    if its text is: of two texts under one name, that of the newest experiment counts.
    """
    newest_first = sorted(records, key=lambda record: (record.created_at, record.run_id), reverse=True)
    experiments: dict[str, dict[str, DriveExperiment]] = {}
    workloads: dict[str, Workload] = {}
    several, running, repeated, other_text = [], [], [], []
    for record in newest_first:
        drive = drive_of(record.target, record.machine)
        if drive is None:
            several.append(record.run_id)
            continue
        if record.state == "running":
            running.append(record.run_id)
            continue
        experiment = DriveExperiment(drive, record)
        used = False
        for name, workload in experiment.workloads.items():
            reference = workloads.setdefault(name, workload)
            if not same_work(reference, workload):
                other_text.append(f"{record.run_id} ({name})")
                used = True
            elif drive.identity not in experiments.setdefault(name, {}):
                experiments[name][drive.identity] = experiment
                used = True
        if not used:
            repeated.append(record.run_id)
    left_out = [
        LeftOut("several drives", several),
        LeftOut("running", running),
        LeftOut("repeated", repeated),
        LeftOut("other text", other_text),
    ]
    ordered = {
        name: sorted(found.values(), key=lambda one: (one.drive.name, one.drive.identity))
        for name, found in experiments.items()
    }
    return Fleet(ordered, workloads, [one for one in left_out if one.runs])
