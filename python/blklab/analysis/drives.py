"""Drives and their experiments, as a verdict for a class takes them: each drive counts once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from blklab.analysis.designs import Design, design_of
from blklab.analysis.metrics import Metric
from blklab.analysis.statistics.difference import Difference
from blklab.analysis.statistics.series import Series
from blklab.analysis.values import ExperimentValues, experiment_values
from blklab.quantities.formatting import count_of, join_names
from blklab.records.experiment import ExperimentRecord
from blklab.records.samples import DiskDescription
from blklab.spec.workloads import Workload


@dataclass(frozen=True)
class Drive:
    """A drive of the fleet."""

    identity: str
    """Tells it apart from all others."""
    name: str
    """For people: ``alpha: nvme0n1``."""
    host: str
    model: str
    size_bytes: int
    rotational: bool | None


def drive_of(record: ExperimentRecord) -> Drive | None:
    """The drive that an experiment tested; None if it tested several together."""
    if len(record.target.disks) != 1:
        return None
    (disk,) = record.target.disks
    on_host = record.target.backend == "host"
    host = record.machine.host if on_host else record.target.backend
    return Drive(
        identity=_identity(record, disk, host),
        name=f"{host}: {disk.name}" if host else disk.name,
        host=host,
        model=disk.model,
        size_bytes=disk.size_bytes,
        rotational=disk.rotational,
    )


def _identity(record: ExperimentRecord, disk: DiskDescription, host: str) -> str:
    """Its own, of a model its parameters; else its place, as long as model and size stay the same."""
    if disk.identity:
        return disk.identity
    if record.target.backend != "host":
        return record.spec.target
    return f"{host}/{disk.name}/{disk.model}/{disk.size_bytes}"


class DriveExperiment:
    """One experiment on one drive; schedulers go by their own grammar, not by their labels."""

    def __init__(self, drive: Drive, record: ExperimentRecord) -> None:
        self.drive = drive
        self.record = record.without_uncounted_slots()
        self.labels = {choice.without_label: choice.label for choice in record.spec.schedulers}
        """By the scheduler in its own grammar."""
        self.workloads = {workload.name: workload for workload in record.spec.workloads}

    @cached_property
    def values(self) -> ExperimentValues:
        """One number per run and metric."""
        return experiment_values(self.record)

    @cached_property
    def design(self) -> Design:
        """The experiment's own."""
        return design_of(self.record.spec)

    def series(self, workload: str, metric: Metric) -> Series:
        """A metric's values by scheduler (in its own grammar) and block."""
        found = self.values.series[workload, metric.name]
        return {name: found[label] for name, label in self.labels.items() if label in found}

    def difference(self, workload: str, metric: Metric, first: str, second: str) -> Difference | None:
        """First against second as the experiment's own report states it; None if they share no block."""
        series = self.series(workload, metric)
        return self.design.of(workload).difference(series.get(first, {}), series.get(second, {}))


@dataclass(frozen=True)
class Fleet:
    """The experiments that count, and the reasons for those that do not."""

    experiments: Mapping[str, Sequence[DriveExperiment]]
    """By workload, one for each drive."""
    workloads: Mapping[str, Workload]
    """As the newest experiment has them."""
    remarks: Sequence[str]

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
        drive = drive_of(record)
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
            if _work(reference) != _work(workload):
                other_text.append(f"{record.run_id} ({name})")
                used = True
            elif drive.identity not in experiments.setdefault(name, {}):
                experiments[name][drive.identity] = experiment
                used = True
        if not used:
            repeated.append(record.run_id)
    reasons = (
        (several, "tested several drives together"),
        (running, "still running"),
        (repeated, "repeated later on the same drive"),
        (other_text, "another workload under the same name"),
    )
    remarks = [
        f"{count_of(len(runs), 'experiment')} left out ({reason}): {join_names(_first(runs))}"
        for runs, reason in reasons
        if runs
    ]
    ordered = {
        name: sorted(found.values(), key=lambda one: (one.drive.name, one.drive.identity))
        for name, found in experiments.items()
    }
    return Fleet(ordered, workloads, remarks)


def _work(workload: Workload) -> tuple[object, ...]:
    """The part of a workload that makes its results comparable."""
    beside = workload.beside.text if workload.beside else None
    return workload.text, workload.decide_by, workload.command, beside


def _first(runs: Sequence[str]) -> list[str]:
    """A few of many."""
    return [*runs[:4], f"{len(runs) - 4} more"] if len(runs) > 5 else list(runs)
