"""The experiments: the four cases, the same on the ioband device, competing groups, today's controllers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from blklab.labs.studies.ioband.set_up import GROUPS, PHASES, IobandSetUp, TiotestCase
from blklab.labs.studies.replication.options import StudyOptions
from blklab.labs.studies.replication.protocol import NamedExperiment
from blklab.labs.studies.replication.specs import study_spec
from blklab.labs.studies.replication.study_folder import StudyFolder
from blklab.quantities.units import parse_size_bytes
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.workloads import Workload

Cgroups = dict[str, dict[str, str]]

DIRECT, BUFFERED = "direct", "buffered"
BFQ, IO_COST, IO_COST_AUTOMATIC = "bfq's weights", "io.cost", "io.cost, automatic model"
MODERN_CONTROLLERS = (BFQ, IO_COST, IO_COST_AUTOMATIC)
_BLOCK_BYTES = 4096


def experiments(options: StudyOptions, folder: StudyFolder) -> Sequence[NamedExperiment]:
    """Lists the experiments, in order."""
    set_up = folder.set_up(IobandSetUp)
    if options.backend != "sim":
        return list(_modern(options, folder, set_up))
    return [
        *_cases(options, folder, set_up),
        *_competing(options, folder, set_up),
        *_modern(options, folder, set_up),
    ]


def on_device_name(case: str) -> str:
    """Name of the experiment that aims a case's load at the ioband device."""
    return f"{case}, on the ioband device"


def competing_name(io_throttle: int, io_mode: str = DIRECT) -> str:
    """Name of the experiment with competing groups."""
    return f"competing, {io_mode}, io_throttle {io_throttle}"


def competing_workload(phase: str, threads: int) -> str:
    """Name of a phase's workload with this many threads in each group."""
    return f"{phase.replace(' ', '-')}-{threads}"


def modern_name(controller: str, disk: str) -> str:
    """Name of the experiment with one of today's controllers; `disk` is empty on the host."""
    return f"{controller} on {disk}" if disk else controller


def modern_controllers(options: StudyOptions) -> tuple[str, ...]:
    """Today's controllers that the backend has."""
    return (BFQ,) if options.backend == "host" else MODERN_CONTROLLERS


def modern_disks(options: StudyOptions, set_up: IobandSetUp) -> list[str]:
    """The disks for today's controllers; one without a name on the host."""
    return [""] if options.backend == "host" else list(set_up.modern.disks)


def _cases(options: StudyOptions, folder: StudyFolder, set_up: IobandSetUp) -> Iterator[NamedExperiment]:
    for name, case in set_up.cases.items():
        workload = _tiotest(folder, set_up, case)
        yield NamedExperiment(
            name,
            f"{name}, as printed: the load aimed at the partition",
            _case_spec(options, set_up, workload, {f"bgroup{group}": {} for group in GROUPS}),
        )
        # Groups with a device each share no device that could weigh them.
        if not case.own_partition:
            yield NamedExperiment(
                on_device_name(name),
                f"{name}, the load aimed at the ioband device",
                _case_spec(options, set_up, workload, _ioband(set_up, 0)),
            )


def _competing(options: StudyOptions, folder: StudyFolder, set_up: IobandSetUp) -> Iterator[NamedExperiment]:
    competing = set_up.competing
    for io_throttle in competing.io_throttle:
        default = io_throttle == competing.io_throttle[0]
        # With fewer bios a group counts as busy, so only the document's number of threads is tested.
        counts = competing.threads if default else [set_up.threads]
        # With so few tokens a round lasts longer than a quick run: only the full length shows shares.
        length = options if default else replace(options, quick=False)
        workloads = [
            _phase(
                options,
                folder,
                set_up,
                phase,
                threads,
                direct=True,
                runtime=competing.runtime_of(length, phase),
            )
            for phase in PHASES
            for threads in counts
        ]
        yield NamedExperiment(
            competing_name(io_throttle),
            f"Groups with continuous direct I/O on the ioband device, io_throttle {io_throttle}",
            study_spec(
                options,
                set_up.sim.target,
                competing.schedulers if default else competing.sorting,
                workloads,
                cgroups=_ioband(set_up, io_throttle),
                blocks=set_up.blocks.under(options),
            ),
        )
    writes = [
        _phase(
            options, folder, set_up, phase, set_up.threads, direct=False, runtime=competing.buffered_runtime
        )
        for phase in PHASES
        if "write" in phase
    ]
    yield NamedExperiment(
        competing_name(competing.io_throttle[0], BUFFERED),
        "Groups with continuous buffered writes on the ioband device",
        study_spec(
            options,
            set_up.sim.target,
            competing.schedulers,
            writes,
            cgroups=_ioband(set_up, competing.io_throttle[0]),
            blocks=set_up.blocks.under(options),
        ),
    )


def _modern(options: StudyOptions, folder: StudyFolder, set_up: IobandSetUp) -> Iterator[NamedExperiment]:
    for disk in modern_disks(options, set_up):
        part = set_up.modern.disks[disk] if disk else set_up.modern.host
        workloads = [
            _phase(
                options,
                folder,
                set_up,
                phase,
                set_up.threads,
                direct=True,
                runtime=part.runtime.under(options),
            )
            for phase in set_up.modern.phases
        ]
        for controller in modern_controllers(options):
            schedulers, cgroups = _controller_settings(options, controller, set_up, part.io_cost_model)
            yield NamedExperiment(
                modern_name(controller, disk),
                f"Groups with continuous direct I/O, {controller}" + (f", {disk}" if disk else ""),
                study_spec(
                    options,
                    f"{options.backend}:{disk}" if disk else options.directory,
                    schedulers,
                    workloads,
                    cgroups=cgroups,
                    blocks=set_up.blocks.under(options),
                ),
            )


def _controller_settings(
    options: StudyOptions, controller: str, set_up: IobandSetUp, io_cost_model: str | None
) -> tuple[list[str], Cgroups]:
    """Returns the schedulers, and the cgroup settings that give the groups their weights."""
    modern = set_up.modern
    attribute = modern.host_bfq_attribute if options.backend == "host" else modern.bfq_attribute
    if controller != BFQ:
        attribute = "io.weight"
    weights = zip(GROUPS, set_up.weights, strict=True)
    cgroups = {f"bgroup{group}": {attribute: str(modern.weight_factor * weight)} for group, weight in weights}
    if controller == BFQ:
        return modern.bfq, cgroups
    root = {"io.cost.qos": modern.io_cost_qos}
    if controller == IO_COST and io_cost_model:
        root["io.cost.model"] = io_cost_model
    return modern.io_cost, {"/": root} | cgroups


def _ioband(set_up: IobandSetUp, io_throttle: int) -> Cgroups:
    """dm-ioband above the disk, as the document's dmsetup commands create it; 0: default io_throttle."""
    device = {"ioband.policy": "weight", "ioband.weight": str(set_up.sim.default_weight)}
    if io_throttle:
        device["ioband.io_throttle"] = str(io_throttle)
    groups = zip(GROUPS, set_up.weights, strict=True)
    return {"/": device} | {f"bgroup{group}": {"ioband.weight": str(weight)} for group, weight in groups}


def _tiotest(folder: StudyFolder, set_up: IobandSetUp, case: TiotestCase) -> Workload:
    files = {f"file_{group}": f"partition{group if case.own_partition else 1}" for group in GROUPS}
    return folder.workload(
        "tiotest.fio",
        direct=int(not case.buffered),
        size=parse_size_bytes(case.thread_size),
        threads=set_up.threads,
        random_bytes=set_up.random_operations * _BLOCK_BYTES,
        **files,
    )


def _phase(
    options: StudyOptions,
    folder: StudyFolder,
    set_up: IobandSetUp,
    phase: str,
    threads: int,
    *,
    direct: bool,
    runtime: str,
) -> Workload:
    return folder.workload(
        "competing.fio",
        name=competing_workload(phase, threads),
        direct=int(direct),
        readwrite=PHASES[phase],
        size=set_up.competing.size.under(options),
        threads=threads,
        runtime=runtime,
    )


def _case_spec(
    options: StudyOptions, set_up: IobandSetUp, workload: Workload, cgroups: Cgroups
) -> ExperimentSpec:
    return study_spec(
        options,
        set_up.sim.target,
        set_up.sim.schedulers,
        [workload],
        cgroups=cgroups,
        blocks=1,
        as_printed=True,
    )
