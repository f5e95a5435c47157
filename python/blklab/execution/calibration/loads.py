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
class Load:
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


MATRIX = tuple(
    Load(jobs, depth, block_kib, direction)
    for direction in ("read", "write", "mixed")
    for block_kib in (4, 64)
    for jobs in (1, 2, 4)
    for depth in (1, 8, 32, 128)
)
"""All loads on which a machine's model is judged."""

FITTED = (
    Load(1, 1, 4, "read"),
    Load(1, 8, 4, "read"),
    Load(1, 32, 4, "read"),
    Load(2, 1, 4, "read"),
    Load(2, 32, 4, "read"),
    Load(4, 8, 4, "read"),
    Load(1, 8, 64, "read"),
    Load(1, 32, 4, "write"),
    Load(2, 8, 4, "mixed"),
)
"""Loads by which the cost table is fitted."""

CHECKED = (
    Load(1, 128, 4, "read"),
    Load(4, 32, 4, "read"),
    Load(2, 8, 64, "mixed"),
    Load(4, 1, 4, "write"),
)
"""Loads that calibration measures too, to tell how well the table fits what it was not fitted on."""
