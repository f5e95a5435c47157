"""The scene that every scheduler is shown in: two readers far apart, and a writer between them.

On a disk with a head, the scene shows how schedulers differ: they alternate between the readers, idle for a
reader's next request, or let the writer's queue fill the disk.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from blklab.quantities.units import NS_PER_SECOND
from blklab.simulator.simulation import SimulationResult, simulate
from blklab.spec.machines import ZERO_CPU_TIME

DEVICE = "hdd-7200,queue_depth=1,write_cache_sectors=0"
"""A disk without queueing and write cache, because these would let the disk reorder requests itself."""

NR_REQUESTS = 128
"""The default of such a disk before 2014; today's kernel gives two requests to a depth of one."""

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
READER_JOBS = ("first reader", "second reader")
WRITER_JOB = "writer"
SHOWN_NS = (400_000_000, 800_000_000)
"""The part of the run that is drawn, after the initial transient."""


@dataclass(frozen=True)
class SceneRun:
    """A run of the scene under one scheduler."""

    scheduler: str
    result: SimulationResult
    complete_ns: NDArray[np.int64]
    position_bytes: NDArray[np.int64]
    """Position of each request, in order of completion."""
    job: NDArray[np.int64]

    def megabytes_per_second(self, job: str) -> float:
        """Throughput of a job, in 10^6 bytes a second."""
        sample = self.result.job(job)
        return sum(one.bytes for one in sample.data_directions()) * 1e3 / sample.runtime_ns

    @property
    def readers_megabytes_per_second(self) -> float:
        """Throughput of both readers together."""
        return sum(self.megabytes_per_second(name) for name in READER_JOBS)

    @property
    def writes_per_second(self) -> float:
        """Completed requests of the writer per second."""
        sample = self.result.job(WRITER_JOB)
        return sum(one.ios for one in sample.data_directions()) * NS_PER_SECOND / sample.runtime_ns

    @property
    def longest_wait_ns(self) -> int:
        """The longest latency of a read."""
        return max(
            one.latency.max_ns for name in READER_JOBS for one in self.result.job(name).data_directions()
        )

    @property
    def turns(self) -> int:
        """Number of changes from one job to another in the drawn part."""
        start, end = SHOWN_NS
        shown = self.job[(self.complete_ns >= start) & (self.complete_ns < end)]
        return int(np.count_nonzero(np.diff(shown)))


def run_scene(scheduler: str) -> SceneRun:
    """Runs the scene; the result is deterministic."""
    # Without a scheduler, only requests that the device has taken exist.
    queue = {} if scheduler == "none" else {"nr_requests": NR_REQUESTS}
    result = simulate(
        DEVICE,
        JOBS,
        scheduler=scheduler,
        queue=queue,
        costs=ZERO_CPU_TIME,
        arrangement="fixed",
        timeline=True,
    )
    if result.timeline is None:
        raise TypeError("the simulation returned no timeline")
    columns = result.timeline.columns()
    served = columns["complete_ns"].argsort(kind="stable")
    return SceneRun(
        scheduler,
        result,
        columns["complete_ns"][served].astype(np.int64),
        columns["sector"][served].astype(np.int64) * 512,
        columns["job"][served].astype(np.int64),
    )
