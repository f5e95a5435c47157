"""The scene that every scheduler is shown in: two readers far apart and a writer between them.

On a disk with a head the scene brings out what schedulers differ in: whether they go back and forth
between the readers, wait for a reader's next request, or let the writer's queue fill the disk.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from blklab.records.samples import NS_PER_SECOND
from blklab.simulator.simulation import SimulationResult, simulate

DEVICE = "hdd-7200,queue_depth=1,write_cache_sectors=0"
"""A plain disk: one that took in many requests, or writes into a cache, would put them in order itself."""

NR_REQUESTS = 128
"""What the queue of such a disk had before 2014; today's kernel gives it two requests for a depth of one."""

JOBS = """\
[global]
direct=1
time_based
runtime=1s
size=64g
filename=disk

[first reader]
readwrite=read
blocksize=128k
ioengine=psync
offset=0

[second reader]
readwrite=read
blocksize=128k
ioengine=psync
offset=800g

[writer]
readwrite=randwrite
blocksize=4k
ioengine=libaio
iodepth=16
offset=400g
"""
READERS = ("first reader", "second reader")
WRITER = "writer"
SHOWN_NS = (400_000_000, 800_000_000)
"""The part of the run that is drawn: long enough after the start that habits show."""


@dataclass(frozen=True)
class Portrait:
    """What one scheduler made of the scene."""

    scheduler: str
    result: SimulationResult
    complete_ns: NDArray[np.int64]
    position_bytes: NDArray[np.int64]
    """Of each request, in order of completion."""
    job: NDArray[np.int64]

    def megabytes_per_second(self, job: str) -> float:
        """Throughput of a job, in 10^6 bytes a second."""
        sample = self.result.job(job)
        return sum(one.bytes for one in sample.data_directions()) * 1e3 / sample.runtime_ns

    @property
    def readers_megabytes_per_second(self) -> float:
        """Of both readers together."""
        return sum(self.megabytes_per_second(name) for name in READERS)

    @property
    def writes_per_second(self) -> float:
        """Completed requests of the writer."""
        sample = self.result.job(WRITER)
        return sum(one.ios for one in sample.data_directions()) * NS_PER_SECOND / sample.runtime_ns

    @property
    def longest_wait_ns(self) -> int:
        """Of any read."""
        return max(one.latency.max_ns for name in READERS for one in self.result.job(name).data_directions())

    @property
    def turns(self) -> int:
        """How often the disk went from one job to another in the part that is drawn."""
        start, end = SHOWN_NS
        shown = self.job[(self.complete_ns >= start) & (self.complete_ns < end)]
        return int(np.count_nonzero(np.diff(shown)))


def portray(scheduler: str) -> Portrait:
    """Runs the scene; the same scheduler gives the same portrait."""
    # Without a scheduler there are no requests beside those that the device has taken.
    queue = {} if scheduler == "none" else {"nr_requests": NR_REQUESTS}
    result = simulate(DEVICE, JOBS, scheduler=scheduler, queue=queue, timeline=True)
    if result.timeline is None:
        raise TypeError("the simulation was asked for a timeline and left none")
    columns = result.timeline.columns()
    served = columns["complete_ns"].argsort(kind="stable")
    return Portrait(
        scheduler,
        result,
        columns["complete_ns"][served].astype(np.int64),
        columns["sector"][served].astype(np.int64) * 512,
        columns["job"][served].astype(np.int64),
    )
