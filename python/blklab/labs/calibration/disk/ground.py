"""The disk that a calibration measures: a target opened by its backend, under the scheduler ``none``.

The same calibration runs on a model, whose figures are known, and on a disk of this machine.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from pydantic import BaseModel, ConfigDict

from blklab.analysis.metrics import metric_named
from blklab.backends import Announce, Session, SessionOptions, backend_for
from blklab.backends.modelled_device import device_facts
from blklab.errors import RequirementError, RunFailedError, UsageError
from blklab.labs.calibration.disk.loads import LEAST_SPACE_BYTES, CalibrationLoad
from blklab.labs.calibration.disk.reads_beside_writes import ReadsBesideWrites
from blklab.linux.disks.loop import is_in_memory
from blklab.linux.queue.hardware import HardwareQueues, hardware_queues
from blklab.quantities.units import format_bytes
from blklab.records.samples import DirectionSample, JobSample, LatencyHistogram, RunSample, TargetDescription
from blklab.records.store import new_run_id
from blklab.spec.machines import Machine
from blklab.spec.plan import Cell, CellKey, derive_seed
from blklab.spec.profiles import load_profile
from blklab.spec.schedulers import SchedulerChoice
from blklab.spec.targets import LoopTarget, ModelTarget, Target

SCHEDULER = SchedulerChoice(name="none", label="none")
DEFAULT_FILE_BYTES = 1 << 30
"""Size of the test file in a directory."""
_BINS_OF_OCTAVE = 64
"""Of `LatencyHistogram`, from one power of two to the next."""
LOOP_KIND = "loop"
"""The kind of modelled devices that are loop devices over memory."""
RAMP_DIVISOR = 5
"""The load runs for this part of its runtime before it is measured."""


class DiskMeasurement(BaseModel):
    """One short run of one load."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    number: int
    """Position in the calibration, from 0."""
    load: str
    """`DiskLoad.name`."""
    at_s: float
    """Its begin, in seconds of measuring since the calibration began."""
    took_s: float
    """Real time that it took, preparation included."""
    ios: int
    iops: float
    p50_ns: float
    p95_ns: float
    p99_ns: float
    sync_p50_ns: float | None = None
    """Of ``fdatasync``, for loads that call it."""
    mean_ns: float | None = None
    min_ns: float | None = None
    max_ns: float | None = None
    p05_ns: float | None = None
    """None in measurements that were saved before these were kept."""
    write_iops: float | None = None
    """Of writes at the same time, for loads of which the other numbers are about reads alone."""


Measure = Callable[[CalibrationLoad, int], DiskMeasurement]
"""Measures a load for so many microseconds."""


@dataclass(frozen=True)
class DiskFacts:
    """Facts of a disk that need no measurement."""

    name: str
    model: str
    capacity_bytes: int
    space_bytes: int
    """The part that loads use."""
    writable: bool
    queues: HardwareQueues
    rotational: bool
    """The disk's own claim."""
    remarks: tuple[str, ...] = ()
    rested: bool = False
    """Whether each run begins on a disk that has rested, as it does on a model."""
    in_memory: bool = False
    """Whether it is a loop device over a file in memory."""


class Ground(Protocol):
    """A disk that can be measured."""

    @property
    def facts(self) -> DiskFacts:
        """Facts of the disk."""

    @property
    def target(self) -> TargetDescription:
        """The target as found."""

    def prepare(self, loads: Sequence[CalibrationLoad], announce: Announce) -> None:
        """Makes sure that all loads can run, and lays out their file.

        Raises:
            BlklabError: if one cannot.
        """

    def measure(self, load: CalibrationLoad, *, number: int, runtime_us: int) -> DiskMeasurement:
        """Runs a load once. Its times are filled in by the caller.

        Raises:
            RunFailedError: if the load fails.
        """

    def commands(self, load: CalibrationLoad, *, runtime_us: int) -> list[str]:
        """The steps of `measure` as shell commands."""


class SessionGround:
    """A target that a backend has opened."""

    def __init__(self, session: Session, facts: DiskFacts, seed: int) -> None:
        self._session = session
        self._seed = seed
        self.facts = facts
        self.target = session.target

    def prepare(self, loads: Sequence[CalibrationLoad], announce: Announce) -> None:
        """Checks the loads and lays out their file; see `Ground`."""
        workloads = [self._cell(load, number=0, runtime_us=1_000_000).workload for load in loads]
        self._session.check([SCHEDULER], workloads)
        self._session.prepare(workloads, announce)

    def measure(self, load: CalibrationLoad, *, number: int, runtime_us: int) -> DiskMeasurement:
        """Runs a load once; see `Ground`."""
        sample = self.sample(load, number=number, runtime_us=runtime_us)
        return measurement_of(load, sample.jobs, number=number)

    def sample(self, load: CalibrationLoad, *, number: int, runtime_us: int) -> RunSample:
        """Runs a load once, for figures that `DiskMeasurement` does not have.

        Raises:
            RunFailedError: if the load fails.
        """
        sample = self._session.run(self._cell(load, number=number, runtime_us=runtime_us))
        if sample.status != "ok":
            raise RunFailedError(f"{load.name} failed: {sample.error}")
        return sample

    def commands(self, load: CalibrationLoad, *, runtime_us: int) -> list[str]:
        """The steps as commands; see `Ground`."""
        return self._session.commands(self._cell(load, number=0, runtime_us=runtime_us))

    def _cell(self, load: CalibrationLoad, *, number: int, runtime_us: int) -> Cell:
        workload = load.workload(
            space_bytes=self.facts.space_bytes, ramp_us=runtime_us // RAMP_DIVISOR, runtime_us=runtime_us
        )
        seed = derive_seed(self._seed, "calibrate", number)
        key = CellKey(
            block=0, sequence=number, position=0, workload=load.name, scheduler=SCHEDULER.label, seed=seed
        )
        return Cell(key=key, scheduler=SCHEDULER, workload=workload)


def measurement_of(load: CalibrationLoad, jobs: Sequence[JobSample], *, number: int = 0) -> DiskMeasurement:
    """Counts and percentiles of a run.

    Raises:
        RunFailedError: if it completed no I/O.
    """
    entries = [entry for job in jobs for entry in job.directions]
    iops, write_iops = metric_named("iops").compute(jobs), None
    if isinstance(load, ReadsBesideWrites):
        write_iops = _iops(entry for entry in entries if entry.direction == "write")
        entries = [entry for entry in entries if entry.direction == "read"]
        iops = _iops(entries) if write_iops else None
    data = LatencyHistogram.merged(entry.latency for entry in entries if entry.direction != "sync")
    syncs = LatencyHistogram.merged(entry.latency for entry in entries if entry.direction == "sync")
    if not iops or not data.count:
        raise RunFailedError(
            f"{load.name} completed no I/O", hint="the disk is too slow for loads this short; raise --budget"
        )
    return DiskMeasurement(
        number=number,
        load=load.name,
        at_s=0,
        took_s=0,
        ios=data.count,
        iops=iops,
        p50_ns=quantile_ns(data, 0.5),
        p95_ns=quantile_ns(data, 0.95),
        p99_ns=quantile_ns(data, 0.99),
        sync_p50_ns=quantile_ns(syncs, 0.5) if load.syncs else None,
        mean_ns=data.mean_ns,
        min_ns=data.min_ns,
        max_ns=data.max_ns,
        p05_ns=quantile_ns(data, 0.05),
        write_iops=write_iops,
    )


def _iops(entries: Iterable[DirectionSample]) -> float:
    return sum(1e9 * entry.ios / entry.runtime_ns for entry in entries if entry.runtime_ns)


def quantile_ns(latencies: LatencyHistogram, fraction: float) -> float:
    """A quantile within its bin: a bin is up to 1.6 % wide, more than these measurements are uncertain.

    Not between bins: where a disk has a few times only, such as one within a track and one at its end, those
    in between never occur.
    """
    middles = np.array(list(latencies.bins), dtype=float)
    parts = np.array(list(latencies.bins.values()), dtype=float) / sum(latencies.bins.values())
    widths = 2.0 ** np.floor(np.log2(np.maximum(middles, 1))) / _BINS_OF_OCTAVE
    ends = np.cumsum(parts)
    place = min(int(np.searchsorted(ends, fraction)), len(ends) - 1)
    within = (fraction - (ends[place] - parts[place])) / parts[place]
    return float(middles[place] + (within - 0.5) * widths[place])


@contextmanager
def opened_ground(
    target: Target,
    *,
    seed: int,
    machine: Machine,
    file_bytes: int | None = None,
    queue: Mapping[str, str] | None = None,
    dry_run: bool = False,
) -> Iterator[SessionGround]:
    """Opens a target; everything is restored at the end, whatever the cause.

    Args:
        target: A disk or a model in the simulator.
        seed: Of the loads.
        machine: The cost table under which a model runs.
        file_bytes: Size of the test file in a directory; None for the default.
        queue: Queue attributes of the disk meanwhile.
        dry_run: Only `Ground.commands` will be used.

    Raises:
        BlklabError: if it cannot be opened.
    """
    if isinstance(target, ModelTarget) and target.scheme != "sim":
        raise UsageError(
            f"{target.text}: only models in the simulator can be calibrated", hint=f"sim:{target.device}"
        )
    if file_bytes is not None and file_bytes < LEAST_SPACE_BYTES:
        raise UsageError(f"the test file must have at least {format_bytes(LEAST_SPACE_BYTES)}")
    run_id = new_run_id(datetime.datetime.now(datetime.timezone.utc))
    is_model = isinstance(target, ModelTarget)
    options = SessionOptions(
        run_id=run_id,
        dry_run=dry_run,
        machine=machine if is_model else None,
        queue=dict(queue or {}),
        # Loads at chosen addresses must find them where they are.
        arrangement="fixed",
    )
    with backend_for(target).open(target, options) as session:
        yield SessionGround(session, _facts(target, session.target, file_bytes), seed)


def _facts(target: Target, found: TargetDescription, file_bytes: int | None) -> DiskFacts:
    if "none" not in found.schedulers:
        raise RequirementError(f"{found.target} does not offer the scheduler none")
    disk = found.disks[0]
    if isinstance(target, ModelTarget):
        device = device_facts(target, load_profile(target.device))["device"]
        queues = HardwareQueues(
            number=device["nr_hw_queues"],
            depth=device["queue_depth"],
            max_sectors_kb=int(disk.queue["max_sectors_kb"]),
            volatile_cache=device["volatile_cache"],
        )
        space_bytes, writable = disk.size_bytes, True
        in_memory = device["kind"] == LOOP_KIND
    else:
        queues = hardware_queues(disk.name)
        on_device = len(found.disks) == 1 and "filesystem" not in found.details
        in_memory = on_device and is_in_memory(disk.name)
        is_block = found.details.get("kind") == "block"
        writable = not is_block
        if isinstance(target, LoopTarget) and target.btrfs is None:
            space_bytes = target.size_bytes
        else:
            space_bytes = disk.size_bytes if is_block else file_bytes or DEFAULT_FILE_BYTES
    if space_bytes < LEAST_SPACE_BYTES:
        raise RequirementError(
            f"{found.target} has {format_bytes(space_bytes)}, too little to calibrate",
            hint=f"it takes at least {format_bytes(LEAST_SPACE_BYTES)}",
        )
    return DiskFacts(
        name=disk.name,
        model=disk.model,
        capacity_bytes=disk.size_bytes,
        space_bytes=space_bytes,
        writable=writable,
        queues=queues,
        rotational=bool(disk.rotational),
        remarks=_remarks(found, writable=writable),
        rested=isinstance(target, ModelTarget),
        in_memory=in_memory,
    )


def _remarks(found: TargetDescription, *, writable: bool) -> tuple[str, ...]:
    remarks = []
    if len(found.disks) > 1:
        names = ", ".join(disk.name for disk in found.disks)
        remarks.append(f"the profile describes {names} together as one disk, with the queues of the first")
    if "filesystem" in found.details:
        remarks.append(f"measured through {found.details['filesystem']}: its own time is part of the figures")
    if not writable:
        remarks.append("a raw device is only read: writes and flushes were not measured")
    return tuple(remarks)
