"""The questions that every judgement asks: each load on each disk under each scheduler.

They are fixed, so that two people who judge the same change get the same bytes. A change to them raises
`VERSION`.
"""

from __future__ import annotations

from dataclasses import dataclass

VERSION = 1

RUNTIME_NS = {
    "hdd-7200": 8_000_000_000,
    "virtio-network": 500_000_000,
    "ssd-sata": 80_000_000,
    "nvme-tlc": 25_000_000,
}
"""The modelled disks, with the length of a run: some thousand I/Os, of which a guest makes ten thousand in a
second of real time."""

SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq")

_GLOBAL = "[global]\nioengine=libaio\ndirect=1\ntime_based\nruntime=1s\nsize=1g\n"

LOADS = {
    "random-readers": _GLOBAL + "bs=4k\n[reader]\nrw=randread\nnumjobs=4\n",
    "deep-reader": _GLOBAL + "bs=4k\n[reader]\nrw=randread\niodepth=32\n",
    "streams": _GLOBAL + "bs=64k\n[stream]\nrw=read\nnumjobs=2\n[random]\nrw=randread\nbs=4k\n",
    "reader-and-writer": (
        _GLOBAL + "[reader]\nrw=randread\nbs=4k\n[writer]\nrw=randwrite\nbs=16k\niodepth=32\n"
    ),
    "mixed": _GLOBAL + "bs=4k\n[mixed]\nrw=randrw\nrwmixread=70\niodepth=16\nnumjobs=2\n",
    "log-and-batch": (_GLOBAL + "bs=4k\n[log]\nrw=write\nfsync=1\n[batch]\nrw=randread\niodepth=16\n"),
    "classes": (
        _GLOBAL
        + "bs=4k\nrw=randread\niodepth=8\n[rt]\nprioclass=1\nprio=4\n[be]\nprioclass=2\nprio=4\n"
        + "[idle]\nprioclass=3\n"
    ),
}
"""Job files, by name."""

METRICS = ("iops", "latency_mean", "latency_p99", "sync_latency_p99")
"""The metrics that are compared, for each job apart."""


@dataclass(frozen=True)
class Question:
    """One load on one disk under one scheduler."""

    disk: str
    scheduler: str
    load: str

    def __str__(self) -> str:
        return f"{self.disk}/{self.scheduler}/{self.load}"


@dataclass(frozen=True)
class Scope:
    """The questions that are asked; an empty part leaves its choice open."""

    disks: tuple[str, ...] = ()
    schedulers: tuple[str, ...] = ()
    loads: tuple[str, ...] = ()
    machine: str | None = None
    """The cost table of the guests' processor; None for the usual one that both kernels can take."""

    def questions(self, offered: tuple[str, ...]) -> dict[str, list[Question]]:
        """The questions about each disk, among schedulers that are offered."""
        schedulers = [name for name in offered if name in (self.schedulers or offered)]
        loads = [name for name in LOADS if name in (self.loads or LOADS)]
        disks = [name for name in RUNTIME_NS if name in (self.disks or RUNTIME_NS)]
        return {
            disk: [Question(disk, scheduler, load) for scheduler in schedulers for load in loads]
            for disk in disks
        }


EVERY_QUESTION = Scope()
