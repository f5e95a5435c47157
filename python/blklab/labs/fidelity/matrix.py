"""The cells that `blklab fidelity` runs: loads, and the devices and schedulers to run each of them on.

Every cell is short, some thousands of I/Os, so that the whole matrix takes minutes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from blklab.labs.fidelity.cells import FidelityCell, JobSection

_MS = 1_000_000
_SECOND = 1_000_000_000


@dataclass(frozen=True)
class MatrixDevice:
    """A device of the matrix, and the runtime of cells on it."""

    device: str
    runtime_ns: int
    """Long enough for some thousands of I/Os at the device's speed."""
    shallow: bool = False
    """Whether it takes so few commands at once that schedulers have few tags by default."""


DEVICES: dict[str, MatrixDevice] = {
    # Without jitter, tasks and device would run in lock-step, unlike any real machine.
    "fixed1": MatrixDevice("fixed,depth=1,latency=100us,jitter=10us", 300 * _MS, shallow=True),
    "fixed4": MatrixDevice("fixed,depth=4,latency=200us,jitter=20us", 200 * _MS, shallow=True),
    "fixed32": MatrixDevice("fixed,depth=32,latency=500us,jitter=50us", 100 * _MS),
    "slow1": MatrixDevice("fixed,depth=1,latency=5ms,jitter=500us,rotational=1", 15 * _SECOND, shallow=True),
    "hdd": MatrixDevice("hdd-7200", 20 * _SECOND),
    "hdd1": MatrixDevice("hdd-7200,queue_depth=1", 20 * _SECOND, shallow=True),
    "sas": MatrixDevice("sas-15k", 10 * _SECOND),
    "sata": MatrixDevice("ssd-sata", 200 * _MS),
    "nvme": MatrixDevice("nvme-tlc,queue_depth=128", 100 * _MS),
    "emmc": MatrixDevice("emmc", 600 * _MS),
    "sd": MatrixDevice("sd-card", 3 * _SECOND, shallow=True),
}
"""By the name in cells."""


@dataclass(frozen=True)
class MatrixScheduler:
    """A scheduler of the matrix with its settings."""

    scheduler: str
    tunables: Mapping[str, str] = field(default_factory=dict)
    queue: Mapping[str, str] = field(default_factory=dict)


SCHEDULERS: dict[str, MatrixScheduler] = {
    "none": MatrixScheduler("none"),
    "mq-deadline": MatrixScheduler("mq-deadline"),
    "kyber": MatrixScheduler("kyber"),
    "bfq": MatrixScheduler("bfq", {"low_latency": "0"}),
    # The defaults of an untuned system.
    "bfq-default": MatrixScheduler("bfq"),
    "mq-deadline-fifo_batch=1": MatrixScheduler("mq-deadline", {"fifo_batch": "1"}),
    "mq-deadline-fifo_batch=64": MatrixScheduler("mq-deadline", {"fifo_batch": "64"}),
    "mq-deadline-writes_starved=8": MatrixScheduler("mq-deadline", {"writes_starved": "8"}),
    "mq-deadline-read_expire=20": MatrixScheduler("mq-deadline", {"read_expire": "20"}),
    "mq-deadline-write_expire=100": MatrixScheduler("mq-deadline", {"write_expire": "100"}),
    "mq-deadline-aging=100": MatrixScheduler("mq-deadline", {"prio_aging_expire": "100"}),
    "mq-deadline-async_depth=4": MatrixScheduler("mq-deadline", {"async_depth": "4"}),
    "mq-deadline-front_merges=0": MatrixScheduler("mq-deadline", {"front_merges": "0"}),
    "mq-deadline-nr=4": MatrixScheduler("mq-deadline", {}, {"nr_requests": "4"}),
    "mq-deadline-nr=16": MatrixScheduler("mq-deadline", {}, {"nr_requests": "16"}),
    "mq-deadline-nr=256": MatrixScheduler("mq-deadline", {}, {"nr_requests": "256"}),
    "mq-deadline-nomerges": MatrixScheduler("mq-deadline", {}, {"nomerges": "2"}),
    "none-nr=4": MatrixScheduler("none", {}, {"nr_requests": "4"}),
    "kyber-read_lat=200us": MatrixScheduler("kyber", {"read_lat_nsec": "200000"}),
    "kyber-write_lat=300us": MatrixScheduler("kyber", {"write_lat_nsec": "300000"}),
    "kyber-nr=256": MatrixScheduler("kyber", {}, {"nr_requests": "256"}),
    "bfq-slice_idle=0": MatrixScheduler("bfq", {"low_latency": "0", "slice_idle": "0"}),
    "bfq-slice_idle=2": MatrixScheduler("bfq", {"low_latency": "0", "slice_idle": "2"}),
    "bfq-strict": MatrixScheduler("bfq", {"low_latency": "0", "strict_guarantees": "1"}),
    "bfq-max_budget=256": MatrixScheduler("bfq", {"low_latency": "0", "max_budget": "256"}),
    "bfq-timeout_sync=30": MatrixScheduler("bfq", {"low_latency": "0", "timeout_sync": "30"}),
    "bfq-back_seek=0": MatrixScheduler("bfq", {"low_latency": "0", "back_seek_max": "0"}),
    "bfq-nr=256": MatrixScheduler("bfq", {"low_latency": "0"}, {"nr_requests": "256"}),
}
"""By the name in cells."""

_SHARE_OF_RUNTIME: dict[tuple[str, str], float] = {
    ("sas", "seqread-qd4"): 0.05,
    ("hdd", "stream-seqwriter"): 0.25,
    ("hdd", "streams-4"): 0.25,
    ("hdd1", "seqwrite-batch"): 0.01,
    ("hdd", "buffered-read"): 0.05,
    ("hdd", "buffered-streams"): 0.1,
    ("nvme", "readers-40"): 0.2,
    ("nvme", "readers-deepwriter"): 0.2,
    ("nvme", "randread-qd16"): 0.3,
    ("sata", "fsync-writer"): 4,
    ("sata", "fsync-writer-readers"): 4,
    ("sata", "buffered-streams"): 4,
    ("sata", "stream-random"): 3,
}
"""Factors on the runtime for loads that would do far more or fewer I/Os than the others."""

_DIRECT: JobSection = {"direct": 1, "time_based": 1, "runtime": "1s", "size": "1g"}
"""Common options; the cell's runtime replaces this one."""


def _tasks(number: int, **options: str | int) -> dict[str, JobSection]:
    """Jobs that differ only in their offset on the disk."""
    return {
        f"task{index}": {**_DIRECT, "rw": "randread", "offset": f"{index * 2}g", **options}
        for index in range(number)
    }


def _job(place: int, **options: str | int) -> JobSection:
    return {**_DIRECT, "offset": f"{place * 2}g", **options}


LOADS: dict[str, Mapping[str, JobSection]] = {
    "randread": {"reader": _job(0, rw="randread")},
    "randwrite": {"writer": _job(0, rw="randwrite")},
    "seqread": {"reader": _job(0, rw="read", bs="64k")},
    "seqwrite": {"writer": _job(0, rw="write", bs="64k")},
    "randread-qd16": {"reader": _job(0, rw="randread", ioengine="io_uring", iodepth=16)},
    "randwrite-qd16": {"writer": _job(0, rw="randwrite", ioengine="io_uring", iodepth=16)},
    "randrw-qd8": {"both": _job(0, rw="randrw", rwmixread=70, ioengine="io_uring", iodepth=8)},
    "seqread-qd4": {"reader": _job(0, rw="read", bs="16k", ioengine="io_uring", iodepth=4)},
    "seqwrite-batch": {
        "writer": _job(0, rw="write", bs="4k", ioengine="io_uring", iodepth=16, iodepth_batch=8)
    },
    "readers-4": _tasks(4),
    "readers-16": {"readers": _job(0, rw="randread", numjobs=16, size="256m")},
    "readers-40": {"readers": _job(0, rw="randread", numjobs=40, size="256m")},
    "streams-4": _tasks(4, rw="read", bs="64k"),
    "writers-4": _tasks(4, rw="randwrite"),
    "reader-writers": {
        "reader": _job(0, rw="randread"),
        "writers": _job(1, rw="randwrite", numjobs=4),
    },
    "readers-deepwriter": {
        "readers": _job(0, rw="randread", numjobs=2),
        "writer": _job(1, rw="randwrite", ioengine="io_uring", iodepth=32),
    },
    "deepreader-writer": {
        "reader": _job(0, rw="randread", ioengine="io_uring", iodepth=32),
        "writer": _job(1, rw="randwrite"),
    },
    "stream-random": {
        "stream": _job(0, rw="read", bs="128k"),
        "random": _job(1, rw="randread", numjobs=2),
    },
    "stream-seqwriter": {
        "stream": _job(0, rw="read", bs="64k"),
        "writer": _job(1, rw="write", bs="64k"),
    },
    "blocks-4k-64k": {
        "small": _job(0, rw="randread", bs="4k"),
        "large": _job(1, rw="randread", bs="64k"),
    },
    "deep-4k-64k": {
        "small": _job(0, rw="randread", bs="4k", ioengine="io_uring", iodepth=8),
        "large": _job(1, rw="randread", bs="64k", ioengine="io_uring", iodepth=8),
    },
    "levels-0-7": {
        "high": _job(0, rw="randread", prioclass=2, prio=0, numjobs=2),
        "low": _job(1, rw="randread", prioclass=2, prio=7, numjobs=2),
    },
    "levels-0-4-7": {
        "high": _job(0, rw="randread", prioclass=2, prio=0, ioengine="io_uring", iodepth=4),
        "middle": _job(1, rw="randread", prioclass=2, prio=4, ioengine="io_uring", iodepth=4),
        "low": _job(2, rw="randread", prioclass=2, prio=7, ioengine="io_uring", iodepth=4),
    },
    "classes-rt-be": {
        "realtime": _job(0, rw="randread", prioclass=1, prio=4),
        "best-effort": _job(1, rw="randread", prioclass=2, prio=4, numjobs=3),
    },
    "classes-be-idle": {
        "best-effort": _job(0, rw="randread", prioclass=2, prio=4),
        "idle": _job(1, rw="randread", prioclass=3, numjobs=3),
    },
    "classes-rt-be-idle": {
        "realtime": _job(0, rw="randread", prioclass=1, prio=4, thinktime="1ms"),
        "best-effort": _job(1, rw="randread", prioclass=2, prio=4, numjobs=2, thinktime="500us"),
        "idle": _job(2, rw="randwrite", prioclass=3, numjobs=2),
    },
    "weights-100-300-600": {
        f"weight{weight}": _job(index, rw="randread", numjobs=4, cgroup=f"g{weight}", cgroup_weight=weight)
        for index, weight in enumerate((100, 300, 600))
    },
    "weights-100-1000-streams": {
        f"weight{weight}": _job(index, rw="read", bs="64k", cgroup=f"g{weight}", cgroup_weight=weight)
        for index, weight in enumerate((100, 1000))
    },
    "weights-write": {
        f"weight{weight}": _job(
            index,
            rw="randwrite",
            ioengine="io_uring",
            iodepth=8,
            cgroup=f"g{weight}",
            cgroup_weight=weight,
        )
        for index, weight in enumerate((100, 400))
    },
    "thinker-readers": {
        "thinker": _job(0, rw="randread", thinktime="2ms"),
        "readers": _job(1, rw="randread", numjobs=3),
    },
    "paced-writers": {
        "paced": _job(0, rw="randread", rate_iops=200),
        "writers": _job(1, rw="randwrite", ioengine="io_uring", iodepth=16),
    },
    "buffered-read": {"reader": _job(0, rw="read", direct=0, size="8g")},
    "buffered-randread": {"reader": _job(0, rw="randread", direct=0, size="8g")},
    "buffered-streams": _tasks(3, rw="read", direct=0, bs="64k", size="2g"),
    "buffered-read-directwriter": {
        "reader": _job(0, rw="read", direct=0, bs="16k"),
        "writer": _job(1, rw="randwrite", ioengine="io_uring", iodepth=8),
    },
    "fsync-writer": {"writer": _job(0, rw="write", direct=0, fsync=1)},
    "fsync-writers": {"writers": _job(0, rw="write", direct=0, bs="64k", fsync=4, numjobs=2)},
    "buffered-writer-reader": {
        "writer": _job(0, rw="write", direct=0, bs="64k", size="8g"),
        "reader": _job(1, rw="randread"),
    },
    "fsync-writer-readers": {
        "writer": _job(0, rw="randwrite", direct=0, fsync=4),
        "readers": _job(1, rw="randread", numjobs=2),
    },
}
"""Job files by the name in cells."""

_PLAIN = ("none", "mq-deadline", "kyber", "bfq")
_SORTING = ("mq-deadline", "bfq")

_PLAN: Sequence[tuple[Sequence[str], Sequence[str], Sequence[str]]] = (
    # devices, schedulers, loads
    (
        ("fixed4",),
        _PLAIN,
        (
            "randread",
            "randwrite",
            "randread-qd16",
            "readers-4",
            "readers-16",
            "readers-40",
            "reader-writers",
            "readers-deepwriter",
            "deepreader-writer",
            "blocks-4k-64k",
            "deep-4k-64k",
            "streams-4",
            "thinker-readers",
            "paced-writers",
        ),
    ),
    (("fixed1",), _PLAIN, ("readers-4", "reader-writers", "readers-16", "stream-seqwriter")),
    (("fixed32",), _PLAIN, ("readers-40", "readers-deepwriter", "randrw-qd8", "seqwrite-batch")),
    (
        ("hdd",),
        _PLAIN,
        ("randread-qd16", "readers-4", "streams-4", "reader-writers", "stream-random", "stream-seqwriter"),
    ),
    (("hdd1",), _SORTING, ("readers-16", "randread-qd16", "reader-writers", "streams-4", "paced-writers")),
    (("sas",), _SORTING, ("readers-deepwriter", "blocks-4k-64k", "seqread-qd4")),
    (
        ("sata",),
        _PLAIN,
        ("randread-qd16", "readers-16", "reader-writers", "readers-deepwriter", "stream-random"),
    ),
    (("nvme",), _PLAIN, ("randread-qd16", "readers-40", "readers-deepwriter", "seqwrite")),
    (("emmc",), _SORTING, ("readers-4", "reader-writers", "seqwrite-batch")),
    (("sd",), _SORTING, ("readers-4", "reader-writers")),
    (("slow1",), ("mq-deadline", "bfq"), ("readers-4", "reader-writers", "levels-0-7", "thinker-readers")),
    # I/O priorities and control groups.
    (
        ("fixed1", "fixed4"),
        ("mq-deadline", "bfq"),
        ("levels-0-7", "levels-0-4-7", "classes-rt-be", "classes-be-idle", "classes-rt-be-idle"),
    ),
    (("hdd", "sata"), ("mq-deadline", "bfq"), ("levels-0-7", "classes-be-idle")),
    (
        ("fixed4", "sata"),
        ("bfq",),
        ("weights-100-300-600", "weights-100-1000-streams", "weights-write"),
    ),
    (("hdd1",), ("bfq",), ("weights-100-1000-streams",)),
    # The defaults of an untuned system.
    (
        ("fixed4", "hdd", "sata"),
        ("bfq-default",),
        ("readers-4", "reader-writers", "stream-random", "thinker-readers"),
    ),
    # Changed tunables.
    (
        ("fixed1", "hdd1"),
        (
            "mq-deadline-fifo_batch=1",
            "mq-deadline-fifo_batch=64",
            "mq-deadline-writes_starved=8",
            "mq-deadline-read_expire=20",
            "mq-deadline-write_expire=100",
        ),
        ("readers-deepwriter",),
    ),
    (("slow1",), ("mq-deadline-aging=100",), ("classes-be-idle", "classes-rt-be")),
    (("fixed4",), ("mq-deadline-async_depth=4",), ("readers-deepwriter", "deepreader-writer")),
    (("hdd1",), ("mq-deadline-front_merges=0", "mq-deadline-nomerges"), ("seqwrite-batch",)),
    (("fixed4",), ("mq-deadline-nr=4", "mq-deadline-nr=16", "none-nr=4"), ("readers-16", "reader-writers")),
    (("fixed4",), ("mq-deadline-nr=256", "kyber-nr=256", "bfq-nr=256"), ("readers-40",)),
    (
        ("fixed32", "sata"),
        ("kyber-read_lat=200us", "kyber-write_lat=300us"),
        ("readers-deepwriter", "randrw-qd8"),
    ),
    (
        ("hdd", "sata"),
        (
            "bfq-slice_idle=0",
            "bfq-slice_idle=2",
            "bfq-strict",
            "bfq-max_budget=256",
            "bfq-timeout_sync=30",
            "bfq-back_seek=0",
        ),
        ("stream-random",),
    ),
    # Through the page cache.
    (("hdd", "sata"), _PLAIN, ("buffered-read", "buffered-streams")),
    (("sata",), ("mq-deadline",), ("buffered-randread",)),
    (("sata",), _SORTING, ("buffered-read-directwriter", "fsync-writer", "fsync-writer-readers")),
    (("fixed4",), _SORTING, ("fsync-writer", "buffered-streams")),
    (("fixed4", "sata", "nvme"), _PLAIN, ("fsync-writers",)),
    (("hdd", "sata"), _SORTING, ("buffered-writer-reader",)),
)


def matrix() -> list[FidelityCell]:
    """All cells, in the order of the plan."""
    return list(_cells())


def cell_of(device: str, scheduler: str, load: str, *, seed: int = 1) -> FidelityCell:
    """Returns the cell with these names.

    Raises:
        KeyError: if a name is not in its table.
    """
    return cell_with(device, scheduler, SCHEDULERS[scheduler], load, seed=seed)


def cell_with(
    device: str, scheduler: str, choice: MatrixScheduler, load: str, *, seed: int = 1
) -> FidelityCell:
    """Returns the cell of a scheduler with settings, which cells call `scheduler`.

    Raises:
        KeyError: if the device or load is not in its table.
    """
    place = DEVICES[device]
    return FidelityCell(
        name=f"{device}/{scheduler}/{load}",
        device=place.device,
        scheduler=choice.scheduler,
        jobs=LOADS[load],
        runtime_ns=round(place.runtime_ns * _SHARE_OF_RUNTIME.get((device, load), 1)),
        tunables=choice.tunables,
        queue={**_tags(place, choice), **choice.queue},
        seed=seed,
    )


def _tags(device: MatrixDevice, choice: MatrixScheduler) -> Mapping[str, str]:
    """Gives every task a tag if the scheduler can have that many.

    With fewer tags, the order in which tasks run decides which task gets one, and without computation only
    chance changes that order. Cells named ``nr=`` test exactly this.
    """
    few = device.shallow and choice.scheduler != "none"
    return {"nr_requests": "64"} if few else {}


def _cells() -> Iterator[FidelityCell]:
    for devices, schedulers, loads in _PLAN:
        for device in devices:
            for load in loads:
                for scheduler in schedulers:
                    yield cell_of(device, scheduler, load)
