"""The experiments: the writers as they were and as they should have been run, the matrix, the distance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from blklab.quantities.units import parse_duration_ns
from blklab.spec.experiment import ExperimentSpec
from blklab.spec.schedulers import parse_scheduler_choices
from blklab.spec.workloads import Workload
from blklab.studies.ionice.set_up import SAMPLE_NS, PublishedDisk, SetUp, disk_text, published_disk
from blklab.studies.replication.protocol import Asked, NamedExperiment
from blklab.studies.replication.study_folder import Published

WRITERS = "writers"
REPEATED = "repeated"
SSD = "ssd"
BLOCK_SIZES = "block-sizes"
MATRICES = {
    "matrix-write": ("direct writes", "write", 1),
    "matrix-read": ("direct reads", "read", 1),
    "matrix-buffered": ("buffered writes", "write", 0),
}
"""Title, direction and whether past the page cache, by name."""

_LARGE_FILE = "16g"
_CLASSES = {"rt": 1, "be": 2, "idle": 3}
_USUAL_LEVEL = 4


def experiments(asked: Asked, published: Published) -> Sequence[NamedExperiment]:
    """What to run, in order."""
    set_up = published.set_up(SetUp)
    disk = published_disk(published)
    found = [*_writers(asked, published, set_up, disk), *_matrices(asked, published, set_up, disk)]
    if asked.place == "sim":
        found += _distances(asked, published, set_up, disk)
    if asked.place == "uml":
        found.append(_block_sizes(asked, published, set_up, disk))
    return found


def command_time_name(command_time: str) -> str:
    """Name of the experiment with commands of that time."""
    return f"command-{command_time}"


def stalled_name(percent: int) -> str:
    """Name of the experiment with a disk that stalls for that share of the time."""
    return f"stalled-{percent}"


def entry_priority(entry: str) -> tuple[int, int]:
    """Class and level of an entry of the matrix: ``be0`` is class 2, level 0."""
    name = entry.rstrip("0123456789")
    level = entry[len(name) :]
    return _CLASSES[name], int(level) if level else _USUAL_LEVEL


def pair_name(first: str, second: str) -> str:
    """Name of the workload in which two entries meet."""
    return f"{first}-{second}"


def pairs_of(entries: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Every pair once, each entry with itself too."""
    for index, first in enumerate(entries):
        for second in entries[index:]:
            yield first, second


def matrix_entries(asked: Asked, set_up: SetUp) -> list[str]:
    """Rows and columns of the matrix."""
    if asked.place == "host":
        return set_up.host.quick_entries if asked.quick else set_up.host.entries
    # A real kernel is some hundred times slower than the simulator.
    few = asked.quick or asked.place == "uml"
    return set_up.matrix.quick_entries if few else set_up.matrix.entries


def _writers(
    asked: Asked, published: Published, set_up: SetUp, disk: PublishedDisk
) -> Iterator[NamedExperiment]:
    host = set_up.host
    writers = set_up.writers
    size, runtime = writers.size, writers.runtime_at(asked)
    if asked.place == "host":
        size = host.quick_size if asked.quick else host.size
        runtime = host.quick_runtime if asked.quick else host.runtime
    share = disk.stalled_share(parse_duration_ns(set_up.distance.stall))
    target = _target(asked, set_up, disk, stalled_share=share)
    yield NamedExperiment(
        WRITERS,
        "Two direct writers, as their author ran them: once",
        _spec(
            asked,
            set_up,
            target,
            [published.workload("writers.fio", size=size)],
            blocks=1,
            as_printed=True,
        ),
    )
    workload = _pair(published, "be0", "be7", "write", 1, runtime, _file_size(asked, set_up))
    repeats = writers.repeated(asked)
    yield NamedExperiment(
        REPEATED,
        "The same all the while, repeated in randomised blocks",
        _spec(asked, set_up, target, [workload], blocks=repeats),
    )


def _matrices(
    asked: Asked, published: Published, set_up: SetUp, disk: PublishedDisk
) -> Iterator[NamedExperiment]:
    host = set_up.host
    for name, (how, readwrite, direct) in MATRICES.items():
        runtime = set_up.matrix.runtime_at(asked, direct)
        if asked.place == "host":
            runtime = host.quick_runtime if asked.quick else host.runtime
        workloads = [
            _pair(published, first, second, readwrite, direct, runtime, _file_size(asked, set_up))
            for first, second in pairs_of(matrix_entries(asked, set_up))
        ]
        schedulers = {"sim": set_up.schedulers.matrix, "uml": set_up.schedulers.uml_matrix, "host": []}
        title = f"Every pair of classes and levels, {how}"
        yield _each_once(asked, set_up, disk, name, title, workloads, schedulers[asked.place])


def _block_sizes(asked: Asked, published: Published, set_up: SetUp, disk: PublishedDisk) -> NamedExperiment:
    """What a kernel's share between equals comes from: the simulator's is nearly a half."""
    workloads = [
        _pair(
            published,
            "be4",
            "be4",
            "write",
            0,
            set_up.matrix.uml_buffered_runtime,
            _LARGE_FILE,
            name=size,
            block_size=size,
        )
        for size in set_up.matrix.uml_block_sizes
    ]
    title = "Two equal processes, buffered writes in blocks of several sizes"
    return _each_once(asked, set_up, disk, BLOCK_SIZES, title, workloads, set_up.schedulers.uml_matrix)


def _each_once(
    asked: Asked,
    set_up: SetUp,
    disk: PublishedDisk,
    name: str,
    title: str,
    workloads: list[Workload],
    schedulers: list[str],
) -> NamedExperiment:
    """Many workloads on the study's disk, each run once."""
    target = _target(asked, set_up, disk)
    return NamedExperiment(
        name, title, _spec(asked, set_up, target, workloads, blocks=1, schedulers=schedulers)
    )


def _distances(
    asked: Asked, published: Published, set_up: SetUp, disk: PublishedDisk
) -> Iterator[NamedExperiment]:
    distance = set_up.distance
    writers = set_up.writers
    runtime = writers.quick_runtime if asked.quick else writers.runtime
    workload = _pair(published, "be0", "be7", "write", 1, runtime, _LARGE_FILE)
    yield NamedExperiment(
        SSD,
        "The same on a SATA SSD, for which cfq does not wait",
        _spec(
            asked,
            set_up,
            f"sim:{distance.ssd}",
            [workload],
            blocks=1,
            schedulers=[*distance.schedulers, "none"],
            deep=False,
        ),
    )
    for command_time in distance.command_times:
        target = disk_text("sim", set_up, command_ns=parse_duration_ns(command_time))
        yield NamedExperiment(
            command_time_name(command_time),
            f"Commands of {command_time} each",
            _spec(asked, set_up, target, [workload], blocks=1, schedulers=distance.schedulers),
        )
    for percent in distance.stalled_percent:
        target = _target(asked, set_up, disk, stalled_share=percent / 100)
        yield NamedExperiment(
            stalled_name(percent),
            f"A disk that stalls for {percent} % of the time",
            _spec(
                asked,
                set_up,
                target,
                [workload],
                blocks=writers.quick_repeats if asked.quick else writers.repeats,
                schedulers=distance.schedulers,
            ),
        )


def _spec(
    asked: Asked,
    set_up: SetUp,
    target: str,
    workloads: list[Workload],
    *,
    blocks: int,
    schedulers: list[str] | None = None,
    as_printed: bool = False,
    deep: bool = True,
) -> ExperimentSpec:
    """One experiment.

    Args:
        asked: What the person asked.
        set_up: The set-up.
        target: What to test.
        workloads: What to run.
        blocks: How often.
        schedulers: Of a model; the place's own if nothing is given, on the host all that there are.
        as_printed: Whether all runs of a scheduler come after one another, and seconds are recorded.
        deep: Whether the queue is as long as cfq's.
    """
    names = (
        schedulers or {"sim": set_up.schedulers.sim, "uml": set_up.schedulers.uml, "host": []}[asked.place]
    )
    queue = {}
    if asked.place != "host":
        queue["max_sectors_kb"] = str(set_up.disk.max_sectors_kb)
        if deep:
            queue["nr_requests"] = str(set_up.disk.nr_requests)
    return ExperimentSpec(
        target=target,
        schedulers=parse_scheduler_choices(names) if names else [],
        workloads=workloads,
        blocks=blocks,
        seed=asked.seed,
        queue=queue,
        order="by-scheduler" if as_printed else "randomised",
        rate_window_ns=SAMPLE_NS,
    )


def _target(asked: Asked, set_up: SetUp, disk: PublishedDisk, *, stalled_share: float = 0.0) -> str:
    if asked.place == "host":
        scratch = set_up.host.quick_scratch if asked.quick else set_up.host.scratch
        return f"loop:{scratch},dir={asked.directory}"
    return disk_text(
        asked.place,
        set_up,
        command_ns=disk.command_ns(1024 * set_up.disk.max_sectors_kb),
        stalled_share=stalled_share,
        stall=set_up.distance.stall,
    )


def _file_size(asked: Asked, set_up: SetUp) -> str:
    if asked.place != "host":
        return _LARGE_FILE
    return set_up.host.quick_size if asked.quick else set_up.host.size


def _pair(
    published: Published,
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
    return published.workload("pair.fio", name=name or pair_name(first, second), **values)
