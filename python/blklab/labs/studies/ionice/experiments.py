"""The experiments: the writers as published and repeated, the matrix, and the distance from the slices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from blklab.labs.studies.ionice.set_up import (
    SAMPLE_NS,
    IoniceSetUp,
    PublishedDisk,
    disk_target,
    published_disk,
)
from blklab.labs.studies.replication.options import StudyOptions
from blklab.labs.studies.replication.protocol import NamedExperiment
from blklab.labs.studies.replication.specs import study_spec
from blklab.labs.studies.replication.study_folder import StudyFolder
from blklab.quantities.units import parse_duration_ns
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.workloads import Workload

WRITERS = "writers"
REPEATED = "repeated"
SSD = "ssd"
BLOCK_SIZES = "block-sizes"
MATRICES = {
    "matrix-write": ("direct writes", "write", 1),
    "matrix-read": ("direct reads", "read", 1),
    "matrix-buffered": ("buffered writes", "write", 0),
}
"""Title, direction and ``direct`` of each matrix, by name."""

_CLASSES = {"rt": 1, "be": 2, "idle": 3}
_USUAL_LEVEL = 4


def experiments(options: StudyOptions, folder: StudyFolder) -> Sequence[NamedExperiment]:
    """Lists the experiments, in order."""
    set_up = folder.set_up(IoniceSetUp)
    disk = published_disk(folder)
    found = [*_writers(options, folder, set_up, disk), *_matrices(options, folder, set_up, disk)]
    if options.backend == "sim":
        found += _distances(options, folder, set_up, disk)
    if options.backend == "uml":
        found.append(_block_sizes(options, folder, set_up, disk))
    return found


def command_time_name(command_time: str) -> str:
    """Name of the experiment with commands of this duration."""
    return f"command-{command_time}"


def stalled_name(percent: int) -> str:
    """Name of the experiment with a disk that stalls for this share of the time."""
    return f"stalled-{percent}"


def entry_priority(entry: str) -> tuple[int, int]:
    """Class and level of an entry of the matrix: ``be0`` is class 2, level 0."""
    name = entry.rstrip("0123456789")
    level = entry[len(name) :]
    return _CLASSES[name], int(level) if level else _USUAL_LEVEL


def pair_name(first: str, second: str) -> str:
    """Name of the workload in which two entries compete."""
    return f"{first}-{second}"


def pairs_of(entries: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Every pair once, including each entry with itself."""
    for index, first in enumerate(entries):
        for second in entries[index:]:
            yield first, second


def matrix_entries(options: StudyOptions, set_up: IoniceSetUp) -> list[str]:
    """Rows and columns of the matrix."""
    return set_up.matrix.entries.under(options)


def _writers(
    options: StudyOptions, folder: StudyFolder, set_up: IoniceSetUp, disk: PublishedDisk
) -> Iterator[NamedExperiment]:
    writers = set_up.writers
    share = disk.stalled_share(parse_duration_ns(set_up.distance.stall))
    target = _target(options, set_up, disk, stalled_share=share)
    yield NamedExperiment(
        WRITERS,
        "Two direct writers, as their author ran them: once",
        _spec(
            options,
            set_up,
            target,
            [folder.workload("writers.fio", size=writers.size.under(options))],
            blocks=1,
            as_printed=True,
        ),
    )
    runtime, file_size = writers.runtime.under(options), writers.file_size.under(options)
    workload = _pair(folder, "be0", "be7", "write", 1, runtime, file_size)
    yield NamedExperiment(
        REPEATED,
        "The same with both writing throughout, repeated in randomised blocks",
        _spec(options, set_up, target, [workload], blocks=writers.blocks.under(options)),
    )


def _matrices(
    options: StudyOptions, folder: StudyFolder, set_up: IoniceSetUp, disk: PublishedDisk
) -> Iterator[NamedExperiment]:
    matrix, file_size = set_up.matrix, set_up.writers.file_size.under(options)
    for name, (how, readwrite, direct) in MATRICES.items():
        runtime = (matrix.direct_runtime if direct else matrix.buffered_runtime).under(options)
        workloads = [
            _pair(folder, first, second, readwrite, direct, runtime, file_size)
            for first, second in pairs_of(matrix_entries(options, set_up))
        ]
        title = f"Every pair of classes and levels, {how}"
        yield _each_once(options, set_up, disk, name, title, workloads)


def _block_sizes(
    options: StudyOptions, folder: StudyFolder, set_up: IoniceSetUp, disk: PublishedDisk
) -> NamedExperiment:
    """Tests the cause of a kernel's unequal share between equals; the simulator's share is nearly a half."""
    workloads = [
        _pair(
            folder,
            "be4",
            "be4",
            "write",
            0,
            set_up.matrix.buffered_runtime.under(options),
            set_up.writers.file_size.under(options),
            name=size,
            block_size=size,
        )
        for size in set_up.matrix.uml_block_sizes
    ]
    title = "Two equal processes, buffered writes in blocks of several sizes"
    return _each_once(options, set_up, disk, BLOCK_SIZES, title, workloads)


def _each_once(
    options: StudyOptions,
    set_up: IoniceSetUp,
    disk: PublishedDisk,
    name: str,
    title: str,
    workloads: list[Workload],
) -> NamedExperiment:
    """An experiment with many workloads on the study's disk, each run once."""
    target = _target(options, set_up, disk)
    schedulers = set_up.schedulers.matrix.under(options)
    return NamedExperiment(
        name, title, _spec(options, set_up, target, workloads, blocks=1, schedulers=schedulers)
    )


def _distances(
    options: StudyOptions, folder: StudyFolder, set_up: IoniceSetUp, disk: PublishedDisk
) -> Iterator[NamedExperiment]:
    distance = set_up.distance
    writers = set_up.writers
    runtime, file_size = writers.runtime.under(options), writers.file_size.under(options)
    workload = _pair(folder, "be0", "be7", "write", 1, runtime, file_size)
    yield NamedExperiment(
        SSD,
        "The same on a SATA SSD, for which cfq does not idle",
        _spec(
            options,
            set_up,
            f"sim:{distance.ssd}",
            [workload],
            blocks=1,
            schedulers=[*distance.schedulers, "none"],
            deep=False,
        ),
    )
    for command_time in distance.command_times:
        target = disk_target("sim", set_up, command_ns=parse_duration_ns(command_time))
        yield NamedExperiment(
            command_time_name(command_time),
            f"Commands of {command_time} each",
            _spec(options, set_up, target, [workload], blocks=1, schedulers=distance.schedulers),
        )
    for percent in distance.stalled_percent:
        target = _target(options, set_up, disk, stalled_share=percent / 100)
        yield NamedExperiment(
            stalled_name(percent),
            f"A disk that stalls for {percent} % of the time",
            _spec(
                options,
                set_up,
                target,
                [workload],
                blocks=writers.blocks.under(options),
                schedulers=distance.schedulers,
            ),
        )


def _spec(
    options: StudyOptions,
    set_up: IoniceSetUp,
    target: str,
    workloads: list[Workload],
    *,
    blocks: int,
    schedulers: list[str] | None = None,
    as_printed: bool = False,
    deep: bool = True,
) -> ExperimentSpec:
    """Builds one experiment.

    Args:
        options: The options of the study.
        set_up: The set-up.
        target: The disk.
        workloads: The workloads.
        blocks: Number of blocks.
        schedulers: The schedulers; None or empty: those of the writers on this backend.
        as_printed: Run one scheduler after another instead of randomised blocks.
        deep: Make the queue as long as cfq's.
    """
    queue = {}
    if options.backend != "host":
        queue["max_sectors_kb"] = str(set_up.disk.max_sectors_kb)
        if deep:
            queue["nr_requests"] = str(set_up.disk.nr_requests)
    return study_spec(
        options,
        target,
        schedulers or set_up.schedulers.writers.under(options),
        workloads,
        blocks=blocks,
        as_printed=as_printed,
        queue=queue,
        rate_window_ns=SAMPLE_NS,
    )


def _target(
    options: StudyOptions, set_up: IoniceSetUp, disk: PublishedDisk, *, stalled_share: float = 0.0
) -> str:
    if options.backend == "host":
        return f"loop:{set_up.host_scratch.of_length(options)},dir={options.directory}"
    return disk_target(
        options.backend,
        set_up,
        command_ns=disk.command_ns(1024 * set_up.disk.max_sectors_kb),
        stalled_share=stalled_share,
        stall=set_up.distance.stall,
    )


def _pair(
    folder: StudyFolder,
    first: str,
    second: str,
    readwrite: str,
    direct: int,
    runtime: str,
    size: str,
    *,
    name: str = "",
    block_size: str = "1m",
) -> Workload:
    values: dict[str, str | int] = {
        "readwrite": readwrite,
        "direct": direct,
        "runtime": runtime,
        "size": size,
        "block_size": block_size,
    }
    for process, entry in (("first", first), ("second", second)):
        values[f"{process}_class"], values[f"{process}_level"] = entry_priority(entry)
    return folder.workload("pair.fio", name=name or pair_name(first, second), **values)
