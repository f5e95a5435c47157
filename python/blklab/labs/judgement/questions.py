"""The questions that every judgement asks: each load on each disk under each scheduler.

They are fixed, so that two people who judge the same change get the same bytes. A change to them raises
`VERSION`.
"""

from __future__ import annotations

from dataclasses import dataclass

from blklab.labs.judgement.loads import LOADS, RUNTIME_NS

VERSION = 2

SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq")
BESIDE = {"bfq": ("bfq:low_latency=0",)}
"""Further choices of a scheduler, asked about on `BESIDE_ON`: bfq has two modes, for response and for
throughput, and the one that is on by default hides most of the other."""
BESIDE_ON = "hdd-7200"

METRICS = ("iops", "latency_mean", "latency_p99", "sync_latency_p99")
"""The metrics that are compared, for each job apart."""


@dataclass(frozen=True)
class JudgementQuestion:
    """One load on one disk under one scheduler."""

    disk: str
    scheduler: str
    """Its name, with tunables if it has any."""
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

    def questions(self, offered: tuple[str, ...]) -> dict[str, list[JudgementQuestion]]:
        """The questions about each disk, among schedulers that are offered."""
        schedulers = [name for name in offered if name in (self.schedulers or offered)]
        beside = [choice for name in schedulers for choice in BESIDE.get(name, ())]
        loads = [name for name in LOADS if name in (self.loads or LOADS)]
        disks = [name for name in RUNTIME_NS if name in (self.disks or RUNTIME_NS)]
        return {
            disk: [
                JudgementQuestion(disk, scheduler, load)
                for load in loads
                if disk in LOADS[load].disks
                for scheduler in [*schedulers, *(beside if disk == BESIDE_ON else [])]
            ]
            for disk in disks
        }


EVERY_QUESTION = Scope()
