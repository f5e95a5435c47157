"""The cells for kernels with the legacy block layer: cfq, deadline and noop under the usual loads."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from blklab.labs.fidelity.cells import FidelityCell
from blklab.labs.fidelity.matrix import MatrixScheduler, cell_with

SCHEDULERS: dict[str, MatrixScheduler] = {
    "cfq": MatrixScheduler("cfq"),
    "deadline": MatrixScheduler("deadline"),
    "noop": MatrixScheduler("noop"),
    "cfq-slice_idle=0": MatrixScheduler("cfq", {"slice_idle": "0"}),
    "cfq-slice_idle=2": MatrixScheduler("cfq", {"slice_idle": "2"}),
    "cfq-idle=0": MatrixScheduler("cfq", {"slice_idle": "0", "group_idle": "0"}),
    "cfq-quantum=1": MatrixScheduler("cfq", {"quantum": "1"}),
    "cfq-quantum=32": MatrixScheduler("cfq", {"quantum": "32"}),
    "cfq-slice_sync=30": MatrixScheduler("cfq", {"slice_sync": "30"}),
    "cfq-slice_async=200": MatrixScheduler("cfq", {"slice_async": "200", "slice_async_rq": "8"}),
    "cfq-target_latency=60": MatrixScheduler("cfq", {"target_latency": "60"}),
    "cfq-low_latency=0": MatrixScheduler("cfq", {"low_latency": "0"}),
    "cfq-back_seek=0": MatrixScheduler("cfq", {"back_seek_max": "0"}),
    "cfq-fifo_expire=20": MatrixScheduler("cfq", {"fifo_expire_sync": "20", "fifo_expire_async": "40"}),
    "deadline-fifo_batch=1": MatrixScheduler("deadline", {"fifo_batch": "1"}),
    "deadline-fifo_batch=64": MatrixScheduler("deadline", {"fifo_batch": "64"}),
    "deadline-writes_starved=8": MatrixScheduler("deadline", {"writes_starved": "8"}),
    "deadline-read_expire=20": MatrixScheduler("deadline", {"read_expire": "20"}),
    "deadline-write_expire=100": MatrixScheduler("deadline", {"write_expire": "100"}),
    "deadline-front_merges=0": MatrixScheduler("deadline", {"front_merges": "0"}),
    "deadline-nr=8": MatrixScheduler("deadline", {}, {"nr_requests": "8"}),
    "noop-nr=8": MatrixScheduler("noop", {}, {"nr_requests": "8"}),
    "cfq-nr=8": MatrixScheduler("cfq", {}, {"nr_requests": "8"}),
    "deadline-nomerges": MatrixScheduler("deadline", {}, {"nomerges": "2"}),
}
"""By the name in cells."""

_WEIGHTS_OF_V1: Mapping[str, Mapping[str, str]] = {
    f"g{weight}": {"blkio.weight": str(weight)} for weight in (100, 300, 600, 1000)
}
"""Weights of control groups of version 1, for the loads ``weights-…``."""

_SHARE_OF_RUNTIME: Mapping[tuple[str, str], float] = {
    ("hdd", "seqread"): 0.05,
    ("hdd", "randread-qd16"): 0.4,
    ("hdd", "streams-4"): 0.4,
    ("hdd1", "streams-4"): 0.1,
    ("hdd", "weights-100-1000-streams"): 0.1,
    ("nvme", "randread-qd16"): 0.5,
    ("nvme", "seqwrite"): 0.5,
    ("hdd", "buffered-read"): 0.4,
}
"""Factors on the runtime for loads that do more I/Os than others; those of the other matrix come on top."""

_PLAIN = ("noop", "deadline", "cfq")
_SORTING = ("deadline", "cfq")
_PRIORITIES = ("levels-0-7", "levels-0-4-7", "classes-rt-be", "classes-be-idle", "classes-rt-be-idle")
_WEIGHTS = ("weights-100-300-600", "weights-100-1000-streams")

_PLAN: Sequence[tuple[Sequence[str], Sequence[str], Sequence[str]]] = (
    # devices, schedulers, loads
    (
        ("hdd",),
        _PLAIN,
        (
            "randread",
            "seqread",
            "randread-qd16",
            "readers-4",
            "readers-16",
            "streams-4",
            "reader-writers",
            "stream-random",
            "stream-seqwriter",
            "thinker-readers",
        ),
    ),
    (("hdd1",), _PLAIN, ("readers-4", "randread-qd16", "reader-writers", "streams-4", "paced-writers")),
    (("sas",), _PLAIN, ("readers-deepwriter", "blocks-4k-64k", "seqread-qd4")),
    (("sata",), _PLAIN, ("randread-qd16", "readers-16", "reader-writers", "stream-random", "seqwrite-batch")),
    (("nvme",), _PLAIN, ("randread-qd16", "seqwrite")),
    (("emmc",), _PLAIN, ("readers-4", "reader-writers", "seqwrite-batch")),
    (("sd",), _PLAIN, ("readers-4", "reader-writers")),
    (("slow1",), _SORTING, ("readers-4", "reader-writers", "thinker-readers")),
    (("fixed1",), _PLAIN, ("readers-4", "reader-writers", "stream-seqwriter")),
    (("fixed4",), _PLAIN, ("readers-16", "deepreader-writer", "deep-4k-64k")),
    (("fixed32",), _PLAIN, ("readers-40", "randrw-qd8")),
    # I/O priorities and control groups.
    (("hdd", "fixed1", "sata"), ("cfq",), _PRIORITIES),
    (("slow1",), ("cfq",), ("levels-0-7", "classes-rt-be")),
    (("hdd", "fixed1", "sata"), ("cfq",), _WEIGHTS),
    (("fixed4",), ("cfq",), ("weights-write",)),
    # Changed tunables.
    (
        ("hdd",),
        (
            "cfq-slice_idle=0",
            "cfq-slice_idle=2",
            "cfq-idle=0",
            "cfq-slice_sync=30",
            "cfq-target_latency=60",
            "cfq-low_latency=0",
            "cfq-back_seek=0",
            "cfq-fifo_expire=20",
        ),
        ("stream-random", "streams-4"),
    ),
    (
        ("hdd", "sata"),
        ("cfq-quantum=1", "cfq-quantum=32", "cfq-slice_async=200", "cfq-low_latency=0"),
        ("readers-deepwriter",),
    ),
    (
        ("fixed1", "hdd1"),
        (
            "deadline-fifo_batch=1",
            "deadline-fifo_batch=64",
            "deadline-writes_starved=8",
            "deadline-read_expire=20",
            "deadline-write_expire=100",
        ),
        ("readers-deepwriter",),
    ),
    (("hdd1",), ("deadline-front_merges=0", "deadline-nomerges"), ("seqwrite-batch",)),
    (("fixed4",), ("deadline-nr=8", "noop-nr=8", "cfq-nr=8"), ("readers-16", "reader-writers")),
    # Through the page cache.
    (("hdd", "sata"), _PLAIN, ("buffered-read", "buffered-streams")),
    (("sata",), _SORTING, ("fsync-writer", "fsync-writer-readers")),
)


def legacy_matrix() -> list[FidelityCell]:
    """All cells, in the order of the plan."""
    return list(_cells())


def _cells() -> Iterator[FidelityCell]:
    for devices, schedulers, loads in _PLAN:
        for device in devices:
            for load in loads:
                for scheduler in schedulers:
                    cell = cell_with(device, scheduler, SCHEDULERS[scheduler], load)
                    share = _SHARE_OF_RUNTIME.get((device, load), 1)
                    cell = dataclasses.replace(cell, runtime_ns=round(cell.runtime_ns * share))
                    yield cell
                    if load in _WEIGHTS:
                        yield _of_version_1(cell)


def _of_version_1(cell: FidelityCell) -> FidelityCell:
    """The same cell with control groups of version 1, whose default weight is another."""
    groups = {str(options["cgroup"]) for options in cell.jobs.values()}
    jobs = {
        name: {key: value for key, value in options.items() if key != "cgroup_weight"}
        for name, options in cell.jobs.items()
    }
    return dataclasses.replace(
        cell,
        name=f"{cell.name}-v1",
        jobs=jobs,
        cgroups={name: _WEIGHTS_OF_V1[name] for name in sorted(groups)},
    )
