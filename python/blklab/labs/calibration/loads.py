"""Loads that show what computing costs: readers and writers of a device that is nearly free itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from blklab.spec.workloads import Workload, parse_workload

Direction = Literal["read", "write", "mixed"]
_READWRITE: dict[Direction, str] = {"read": "randread", "write": "randwrite", "mixed": "randrw"}

JOB_MIB = 64
"""Size of each job's file."""


@dataclass(frozen=True)
class ProcessorLoad:
    """Some jobs that keep some I/Os of one size in flight."""

    jobs: int
    depth: int
    """I/Os in flight of each job."""
    block_kib: int
    direction: Direction

    @property
    def name(self) -> str:
        """Such as ``2x32-4k-read``."""
        return f"{self.jobs}x{self.depth}-{self.block_kib}k-{self.direction}"

    def workload(self, *, ramp_ms: int, runtime_ms: int) -> Workload:
        """The load as a job file."""
        text = (
            "; decide-by: iops\n"
            f"[load]\nrw={_READWRITE[self.direction]}\nbs={self.block_kib}k\ndirect=1\nioengine=io_uring\n"
            f"iodepth={self.depth}\nnumjobs={self.jobs}\nsize={JOB_MIB}m\n"
            f"time_based\nramp_time={ramp_ms}ms\nruntime={runtime_ms}ms\n"
        )
        return parse_workload(text, name=self.name, source=self.name)


_DIRECTIONS: tuple[Direction, ...] = ("read", "write", "mixed")
_BLOCKS_KIB = (4, 64)
_JOBS = (1, 2, 4)
_DEPTHS = (1, 8, 32, 128)


def _is_fitted(load: ProcessorLoad) -> bool:
    """Whether a load is in the fraction of the matrix by which tables are fitted.

    A third, as in a Latin square: with each direction and size of block every depth once and every number of
    jobs once or twice, so that no other load is far from all of them.
    """
    return (
        _JOBS.index(load.jobs)
        + _DEPTHS.index(load.depth)
        + 2 * _BLOCKS_KIB.index(load.block_kib)
        + _DIRECTIONS.index(load.direction)
    ) % len(_JOBS) == 0


MATRIX = tuple(
    ProcessorLoad(jobs, depth, block_kib, direction)
    for direction in _DIRECTIONS
    for block_kib in _BLOCKS_KIB
    for jobs in _JOBS
    for depth in _DEPTHS
)
"""All loads on which a machine's model is judged."""

FITTED = tuple(load for load in MATRIX if _is_fitted(load))
"""Loads by which the cost table is fitted."""

CHECKED = (
    ProcessorLoad(1, 8, 4, "read"),
    ProcessorLoad(4, 32, 4, "read"),
    ProcessorLoad(2, 8, 64, "write"),
    ProcessorLoad(4, 1, 4, "mixed"),
)
"""Loads that calibration measures too, to tell how well the table fits what it was not fitted on."""
