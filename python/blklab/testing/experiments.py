"""Makes records of experiments that never ran, from a seed.

Their truth is known in advance, so analysis and reports can be checked against it. A scheduler has a speed
relative to the workload's, noise from run to run, and a tail; the machine drifts over the experiment and
differs from block to block; runs can fail. Seeds and order come from the real plan.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from blklab.experiment.entitlement import with_promises
from blklab.quantities.units import NS_PER_SECOND
from blklab.records.experiment import ExperimentRecord, RunState
from blklab.records.machine_events import DiskTraffic, MachineEvents
from blklab.records.samples import (
    DirectionSample,
    DiskDescription,
    JobSample,
    LatencyHistogram,
    MachineDescription,
    RateWindows,
    RunSample,
    TargetDescription,
)
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.goals import parse_goal
from blklab.spec.plan import Cell, Plan
from blklab.spec.schedulers import SchedulerChoice, parse_scheduler_choice
from blklab.spec.sweeps import parse_sweeps, settle_sweep, with_sweep_cells
from blklab.spec.workloads import Job, Workload, parse_workload

VALUES_PER_POWER_OF_TWO_BITS = 6
"""fio's log-linear bins: 64 to a power of two (FIO_IO_U_PLAT_BITS)."""

QUIET = MachineEvents(
    duration_ns=2 * NS_PER_SECOND,
    pressure_ns={"io_some": NS_PER_SECOND, "cpu_some": 20_000_000, "memory_some": 0},
    steal_fraction=0.001,
    frequency_mhz=2400.0,
    temperature_celsius=45.0,
    traffic=DiskTraffic(
        read_bytes=100_200_000, written_bytes=400_000, own_read_bytes=100_000_000, own_written_bytes=0
    ),
)
"""The events of an otherwise idle machine during a run."""

_START = datetime.datetime(2024, 5, 17, 9, 30, tzinfo=datetime.timezone.utc)


@dataclass(frozen=True)
class SchedulerBehaviour:
    """The behaviour of a made-up scheduler."""

    speed: float = 1.0
    """I/Os per second relative to the workload's."""
    noise: float = 0.01
    """Standard deviation of the log of the speed from run to run."""
    tail: float = 1.0
    """Factor on the spread of latencies: above 1 the percentiles lie further apart."""
    cpu: float = 1.0
    """Factor on the kernel's CPU time per I/O."""
    change: float = 0.0
    """Change of the speed from the beginning of a run to its end, as a fraction; only visible with
    ``over_time``."""


@dataclass(frozen=True)
class WorkloadBehaviour:
    """The behaviour of a made-up disk under a workload."""

    ios_per_second: float = 12_000.0
    depth: int = 32
    spread: float = 0.45
    """Standard deviation of the log of latencies."""
    schedulers: Mapping[str, SchedulerBehaviour] = field(default_factory=dict)
    """By label, instead of the experiment's: for a control that differs, say."""


def make_choice(text: str) -> SchedulerChoice:
    """A scheduler in the grammar ``[LABEL=]NAME[:TUNABLE=VALUE…]``."""
    return parse_scheduler_choice(text)


def make_workload(
    name: str,
    *,
    purpose: str = "Small random reads, 32 at a time.",
    control: bool = False,
    decide_by: str = "iops",
    reads: bool = True,
    syncs: bool = False,
    background: bool = False,
    block_size_bytes: int = 4096,
    iodepth: int = 32,
    source: str | None = None,
    remark: str | None = None,
) -> Workload:
    """A workload from a generated job file, read by the parser.

    Args:
        name: Its name.
        purpose: One line for people.
        control: Whether it is a control, which no scheduler can influence.
        decide_by: Metric that the verdict rests on.
        reads: Whether it reads; else it writes.
        syncs: Whether to call fdatasync after each write.
        background: Whether to add a section of writers that is not measured.
        block_size_bytes: Size of an I/O.
        iodepth: I/Os in flight.
        source: The job file; of a shipped workload its name.
        remark: A comment line for the job file.
    """
    focus = "reader" if reads else "writer"
    options = {
        "filename": "data",
        "rw": "randread" if reads else "randwrite",
        "bs": str(block_size_bytes),
        "ioengine": "libaio",
        "iodepth": str(iodepth),
        "direct": "1",
        "size": "256m",
        "time_based": "1",
        "runtime": "2s",
    }
    if syncs:
        options["fdatasync"] = "1"
    sections = {focus: options}
    if background:
        sections["background"] = options | {"rw": "randwrite", "numjobs": "4"}
    lines = [f"; purpose: {purpose}", f"; decide-by: {decide_by}", f"; focus: {focus}"]
    lines += [f"; control: {'yes' if control else 'no'}", *([f"; {remark}"] if remark else [])]
    for section, settings in sections.items():
        lines += ["", f"[{section}]", *(f"{key}={value}" for key, value in settings.items())]
    return parse_workload("\n".join(lines) + "\n", name=name, source=source or f"{name}.fio")


def make_spec(
    schedulers: Sequence[str] = ("none", "mq-deadline", "kyber", "bfq"),
    workloads: Sequence[Workload] = (),
    *,
    target: str = "/srv/data",
    blocks: int | None = 6,
    budget_ns: int | None = None,
    seed: int = 1,
    goal: str | None = None,
    sweeps: Sequence[str] = (),
    sweep_defaults: Mapping[str, str] | None = None,
) -> ExperimentSpec:
    """A specification with the rest at its defaults.

    Args:
        schedulers: In their grammar; cells of sweeps are added.
        workloads: One by default.
        target: The target, in its grammar.
        blocks: Their number.
        budget_ns: Instead of blocks.
        seed: Of everything random.
        goal: In its grammar.
        sweeps: In their grammar.
        sweep_defaults: Default values of swept tunables.
    """
    settled = [settle_sweep(sweep, lambda _: sweep_defaults) for sweep in parse_sweeps(sweeps)]
    return ExperimentSpec(
        target=target,
        goal=None if goal is None else parse_goal(goal),
        sweeps=settled,
        schedulers=with_sweep_cells([make_choice(text) for text in schedulers], settled),
        workloads=list(workloads) or [make_workload("random-read-4k-qd32", source="random-read-4k-qd32")],
        blocks=blocks,
        budget_ns=budget_ns,
        seed=seed,
    )


def make_experiment(
    spec: ExperimentSpec | None = None,
    *,
    behaviours: Mapping[str, SchedulerBehaviour] | None = None,
    workloads: Mapping[str, WorkloadBehaviour] | None = None,
    blocks_made: int | None = None,
    block_noise: float = 0.02,
    drift: float = 0.0,
    failures: Collection[tuple[int, str, str]] = (),
    state: RunState = "complete",
    target: TargetDescription | None = None,
    machine: MachineDescription | None = None,
    warnings: Sequence[str] = (),
    over_time: bool = False,
    events: Mapping[tuple[int, str, str], MachineEvents] | None = None,
) -> ExperimentRecord:
    """An experiment as it would be stored. The same arguments give the same record.

    Args:
        spec: The experiment; by default four schedulers under one workload.
        behaviours: Of schedulers, by label; the others are average.
        workloads: Behaviour of the disk, by workload.
        blocks_made: Blocks that ran, if a budget decided or the experiment was interrupted.
        block_noise: Standard deviation of the log of the speed from block to block, the same for all
            schedulers of a block.
        drift: Change of the log of the speed from the first run to the last.
        failures: Runs that failed: block, workload, scheduler's label.
        state: State in which the experiment ended.
        target: By default a rotating disk.
        machine: By default a small one.
        warnings: Of the backend, before the first run.
        over_time: Whether runs have their speed over time.
        events: Of the machine during some runs (block, workload, scheduler's label); during all others it
            was quiet. None: the machine was not watched.
    """
    spec = spec or make_spec()
    plan = Plan(spec)
    blocks = blocks_made if blocks_made is not None else spec.blocks or 6
    total = blocks * plan.cells_per_block
    samples: list[RunSample] = []
    for number in range(blocks):
        common = np.random.default_rng([spec.seed, number]).normal(0, block_noise)
        for cell in plan.block(number):
            slowdown = common + drift * cell.key.sequence / max(1, total - 1)
            if (number, cell.workload.name, cell.scheduler.label) in failures:
                samples.append(_failed_run(cell))
            else:
                sample = _run(cell, slowdown, behaviours or {}, workloads or {}, over_time=over_time)
                if events is not None:
                    key = (number, cell.workload.name, cell.scheduler.label)
                    sample = sample.model_copy(update={"events": events.get(key, QUIET)})
                samples.append(with_promises(sample, cell, spec.cgroups))
    return ExperimentRecord(
        run_id=f"20240517-093000-test{spec.seed}",
        created_at=_START.isoformat(timespec="seconds"),
        state=state,
        blklab_version="0.1.0",
        spec=spec,
        target=target or make_target(spec),
        machine=machine or make_machine(),
        samples=samples,
        warnings=list(warnings),
    )


def make_target(
    spec: ExperimentSpec, *, model: str = "EXAMPLE HDD 4000", backend: str = "host"
) -> TargetDescription:
    """A disk with the schedulers of an experiment."""
    offered = list(dict.fromkeys(choice.name for choice in spec.schedulers))
    return TargetDescription(
        target=spec.target,
        backend=backend,
        summary=f"{spec.target} on vda ({model}, 4.0 TB, rotating)",
        disks=[
            DiskDescription(
                name="vda",
                model=model,
                size_bytes=4_000_787_030_016,
                rotational=True,
                scheduler="mq-deadline",
                schedulers=offered,
                queue={
                    "nr_requests": "256",
                    "read_ahead_kb": "128",
                    "wbt_lat_usec": "75000",
                    "iosched/fifo_batch": "16",
                    "iosched/read_expire": "500",
                },
            )
        ],
        default_scheduler="mq-deadline",
        schedulers=offered,
        details={"file system": "ext4", "mount options": "rw,relatime", "stack": "/dev/mapper/srv → vda"},
    )


def make_machine() -> MachineDescription:
    """A small machine."""
    return MachineDescription(
        kernel="6.1.0-21-amd64",
        cpu="Example CPU 2.4 GHz",
        cpus=4,
        memory_bytes=16 << 30,
        details={"distribution": "Debian GNU/Linux 12 (bookworm)"},
    )


def _failed_run(cell: Cell) -> RunSample:
    return RunSample(
        cell=cell.key,
        status="failed",
        error="fio: io_u error on file data: Input/output error: read offset=1048576, buflen=4096",
        started_at=_started_at(cell),
        elapsed_ns=NS_PER_SECOND // 4,
        jobs=[],
        settings=_settings(cell),
        engine={"name": "fio", "version": "3.33"},
    )


def _run(
    cell: Cell,
    slowdown: float,
    behaviours: Mapping[str, SchedulerBehaviour],
    workloads: Mapping[str, WorkloadBehaviour],
    *,
    over_time: bool,
) -> RunSample:
    label = cell.scheduler.label
    disk = workloads.get(cell.workload.name, WorkloadBehaviour())
    behaviour = disk.schedulers.get(label, behaviours.get(label, SchedulerBehaviour()))
    generator = np.random.default_rng([cell.key.seed, cell.key.position])
    speed = disk.ios_per_second * behaviour.speed * math.exp(slowdown + generator.normal(0, behaviour.noise))
    jobs = [
        _job_sample(job, speed if job.name in cell.workload.focus else speed / 3, disk, behaviour, generator)
        for job in cell.workload.jobs
    ]
    if over_time:
        seed = [cell.key.seed, cell.key.position, 1]
        jobs = [job.model_copy(update={"rates": _rates(job, behaviour, seed)}) for job in jobs]
    return RunSample(
        cell=cell.key,
        status="ok",
        started_at=_started_at(cell),
        elapsed_ns=2 * NS_PER_SECOND + 300_000_000,
        jobs=jobs,
        settings=_settings(cell),
        engine={"name": "fio", "version": "3.33"},
    )


def _job_sample(
    job: Job,
    ios_per_second: float,
    disk: WorkloadBehaviour,
    behaviour: SchedulerBehaviour,
    generator: np.random.Generator,
) -> JobSample:
    runtime_ns = 2 * NS_PER_SECOND
    ios = max(1, round(ios_per_second * runtime_ns / NS_PER_SECOND))
    mean_ns = disk.depth / ios_per_second * NS_PER_SECOND
    spread = disk.spread * behaviour.tail
    latency = _histogram(mean_ns, spread, min(ios, 4000), generator)
    moved = ios * job.block_size_bytes
    directions = [
        DirectionSample(
            direction="read" if job.reads else "write",
            ios=ios,
            bytes=moved,
            runtime_ns=runtime_ns,
            latency=latency,
        )
    ]
    if "fdatasync" in job.options:
        flush = _histogram(4 * mean_ns, spread, min(ios, 4000), generator)
        directions.append(
            DirectionSample(direction="sync", ios=ios, bytes=0, runtime_ns=runtime_ns, latency=flush)
        )
    return JobSample(
        name=job.name,
        clones=job.numjobs,
        runtime_ns=runtime_ns,
        directions=directions,
        cpu_user_ns=ios * 2_000,
        cpu_system_ns=round(ios * 6_500 * behaviour.cpu * generator.normal(1, 0.02)),
        context_switches=ios,
    )


def _rates(job: JobSample, behaviour: SchedulerBehaviour, seed: Sequence[int]) -> RateWindows:
    """Forty windows along a straight line with a little noise, whose mean is the job's speed."""
    noise = np.random.default_rng(list(seed)).normal(0, 0.02, 40)
    mean = sum(entry.bytes for entry in job.data_directions()) * NS_PER_SECOND / job.runtime_ns
    line = 1 + behaviour.change * (np.arange(40) / 39 - 0.5)
    return RateWindows(
        window_ns=job.runtime_ns // 40, bytes_per_second=[float(mean * v) for v in line * np.exp(noise)]
    )


def _histogram(mean_ns: float, spread: float, count: int, generator: np.random.Generator) -> LatencyHistogram:
    """Log-normal latencies of a given mean, in fio's bins."""
    latencies = np.exp(generator.normal(math.log(mean_ns) - spread**2 / 2, spread, count)).astype(np.int64)
    bins: dict[int, int] = {}
    for value_ns in latencies.tolist():
        bin_ns = bin_value_ns(value_ns)
        bins[bin_ns] = bins.get(bin_ns, 0) + 1
    return LatencyHistogram(
        count=count,
        sum_ns=float(latencies.sum()),
        min_ns=int(latencies.min()),
        max_ns=int(latencies.max()),
        bins=dict(sorted(bins.items())),
    )


def bin_value_ns(latency_ns: int) -> int:
    """The middle of the bin of fio's layout in which a latency falls."""
    width_bits = max(0, latency_ns.bit_length() - 1 - VALUES_PER_POWER_OF_TWO_BITS)
    width = 1 << width_bits
    return latency_ns if width == 1 else latency_ns // width * width + width // 2


def _settings(cell: Cell) -> dict[str, str]:
    settings = {
        "vda/scheduler": cell.scheduler.name,
        "vda/nr_requests": "256",
        "vda/read_ahead_kb": "128",
        "vda/wbt_lat_usec": "0" if cell.scheduler.name == "bfq" else "75000",
    }
    if cell.scheduler.name == "mq-deadline":
        settings |= {"vda/iosched/fifo_batch": "16", "vda/iosched/read_expire": "500"}
    return settings | {f"vda/iosched/{key}": value for key, value in cell.scheduler.tunables.items()}


def _started_at(cell: Cell) -> str:
    return (_START + datetime.timedelta(seconds=2.4 * cell.key.sequence)).isoformat(timespec="milliseconds")
