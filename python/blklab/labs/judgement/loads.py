"""The loads of the questions: those that programs make, and those that schedulers treat specially."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from blklab.labs.judgement.hand_over import cooperators, pipes

RUNTIME_NS = {
    "hdd-7200": 8_000_000_000,
    "virtio-network": 500_000_000,
    "ssd-sata": 80_000_000,
    "nvme-tlc": 25_000_000,
}
"""The modelled disks, with the usual length of a run: some thousand I/Os, of which a guest makes ten thousand
in a second of real time."""

DISKS = tuple(RUNTIME_NS)
_EIGHTHS = re.compile(r"\{(\d)/8\}")
TARGET = "loop:2g"
"""The scratch device for loads of modules, unless another is named."""
SLOW_AND_FAST = ("hdd-7200", "ssd-sata")


@dataclass(frozen=True)
class JudgementLoad:
    """A job file, where it runs, and under which conditions."""

    jobs: str
    """``{3/8}`` stands for three eighths of the runtime."""
    disks: tuple[str, ...] = DISKS
    lasts: Mapping[str, float] = field(default_factory=dict)
    """Length of a run on a disk, as a multiple of the usual; 1 where it is left out."""
    cgroups: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    changes: tuple[str, ...] = ()
    """Changes after half of the runtime."""

    def runtime_ns(self, disk: str) -> int:
        """Length of a run on a disk."""
        return round(RUNTIME_NS[disk] * self.lasts.get(disk, 1))

    def text(self, disk: str) -> str:
        """The job file for a disk."""
        return self.text_for(self.runtime_ns(disk))

    def text_for(self, runtime_ns: int) -> str:
        """The job file for runs of a length."""
        eighth_us = runtime_ns // 8000
        return _EIGHTHS.sub(lambda match: f"{eighth_us * int(match[1])}us", self.jobs)

    def changes_on(self, disk: str) -> tuple[str, ...]:
        """The changes on a disk, each with its time."""
        return tuple(f"{self.runtime_ns(disk) // 2000}us {change}" for change in self.changes)


_GLOBAL = "[global]\nioengine=libaio\ndirect=1\ntime_based\nruntime=1s\nsize=1g\n"
_REPLAY = "[global]\nioengine=libaio\ndirect=1\nsize=2g\nfilename=replay\n"
_STREAM = "[stream]\nrw=read\nbs=64k\nfilename=stream\ntime_based\nruntime=1s\n"
_BACKGROUND = "[batch]\nrw=randread\nbs=4k\niodepth=4\nfilename=batch\ntime_based\nruntime=1s\n"
_BATCHES = "iodepth=64\niodepth_batch_submit=64\nthinktime=200us\nthinktime_blocks=64\n"

LOADS = {
    # What programs do.
    "random-readers": JudgementLoad(_GLOBAL + "bs=4k\n[reader]\nrw=randread\nnumjobs=4\n"),
    "deep-reader": JudgementLoad(_GLOBAL + "bs=4k\n[reader]\nrw=randread\niodepth=32\n"),
    "streams": JudgementLoad(
        _GLOBAL + "bs=64k\n[stream]\nrw=read\nnumjobs=2\n[random]\nrw=randread\nbs=4k\n"
    ),
    "reader-and-writer": JudgementLoad(
        _GLOBAL + "[reader]\nrw=randread\nbs=4k\n[writer]\nrw=randwrite\nbs=16k\niodepth=32\n"
    ),
    "mixed": JudgementLoad(_GLOBAL + "bs=4k\n[mixed]\nrw=randrw\nrwmixread=70\niodepth=16\nnumjobs=2\n"),
    "log-and-batch": JudgementLoad(
        _GLOBAL + "bs=4k\n[log]\nrw=write\nfsync=1\n[batch]\nrw=randread\niodepth=16\n"
    ),
    # Through the page cache: readahead, writeback, and blocks that are written in part.
    "buffered": JudgementLoad(
        "[global]\nioengine=psync\ndirect=0\ntime_based\nruntime=1s\nsize=1g\n"
        "[reader]\nrw=read\nbs=64k\n[writer]\nrw=write\nbs=64k\nfsync=32\n"
        "[updater]\nrw=randwrite\nbs=2k\nfsync=4\n",
        disks=("hdd-7200", "ssd-sata", "nvme-tlc"),
        lasts={"hdd-7200": 0.25},
    ),
    # Priorities: classes for longer than a low one is left waiting (10 s), and levels that come later.
    "classes": JudgementLoad(
        _GLOBAL
        + "bs=4k\nrw=randread\niodepth=8\n[rt]\nprioclass=1\nprio=4\n[be]\nprioclass=2\nprio=4\n"
        + "[idle]\nprioclass=3\n",
        lasts={"hdd-7200": 3},
    ),
    "levels": JudgementLoad(
        _GLOBAL
        + "bs=4k\nrw=randread\n[usual]\nnumjobs=2\n[low]\nprioclass=2\nprio=7\nstartdelay={2/8}\n"
        + "[high]\nprioclass=2\nprio=1\nstartdelay={2/8}\n",
        disks=SLOW_AND_FAST,
    ),
    # Jobs that compute between their I/Os, and jobs that wait for each other: is the disk to wait for them?
    "thinkers": JudgementLoad(
        _GLOBAL
        + "[thinks1500us]\nrw=read\nbs=16k\nthinktime=1500us\nstartdelay={1/8}\n"
        + "[thinks6ms]\nrw=read\nbs=16k\nthinktime=6ms\nstartdelay={2/8}\n"
        + "[thinks24ms]\nrw=read\nbs=16k\nthinktime=24ms\nstartdelay={3/8}\n"
        + "[batch]\nrw=randread\nbs=4k\niodepth=4\n",
        disks=SLOW_AND_FAST,
        lasts={"hdd-7200": 4},
    ),
    "pipes": JudgementLoad(
        _REPLAY + _STREAM + _BACKGROUND + pipes(items=600, thinks_ns=((0, 0), (2_000_000, 1_000_000))),
        disks=SLOW_AND_FAST,
        lasts={"hdd-7200": 4},
    ),
    "cooperators": JudgementLoad(
        _REPLAY + _STREAM + cooperators(rounds=100, tasks=4, batch=4),
        disks=SLOW_AND_FAST,
        lasts={"hdd-7200": 0.25},
    ),
    # Limits and batches: more writes than a scheduler has tags, and more I/Os at once than a plug holds.
    "deep-writers": JudgementLoad(
        _GLOBAL + "bs=4k\n[reader]\nrw=randread\nnumjobs=2\n[writer]\nrw=randwrite\niodepth=256\nnumjobs=2\n"
    ),
    "batches": JudgementLoad(
        _GLOBAL + "[batches]\nrw=randread:8\nbs=4k\n" + _BATCHES,
        lasts={"hdd-7200": 0.5},
    ),
    "strides": JudgementLoad(
        _GLOBAL + "[strides]\nrw=read:4k\nbs=4k\n" + _BATCHES,
        lasts={"hdd-7200": 0.1, "virtio-network": 0.5},
    ),
    # Control groups, one in another, under bfq and io.cost; the outer one's weight changes.
    "groups": JudgementLoad(
        _GLOBAL
        + "rw=randread\nbs=4k\niodepth=16\n[inner]\ncgroup=team/inner\n[outer]\ncgroup=team/outer\n"
        + "[other]\ncgroup=other\n",
        disks=("hdd-7200", "virtio-network"),
        lasts={"virtio-network": 2},
        cgroups={"/": {"io.cost.qos": "enable=1"}},
        changes=("team: io.weight=400", "team: io.bfq.weight=400"),
    ),
}
"""By name."""
