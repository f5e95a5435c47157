"""CPU time of the load per I/O."""

from __future__ import annotations

from collections.abc import Sequence

from blklab.analysis.metrics._commands import sections_of
from blklab.quantities.units import NS_PER_US
from blklab.records.samples import JobSample

NAME = "cpu_per_io"
UNIT = "us"
BETTER = "lower"
DESCRIPTION = (
    "user and system CPU time of the load's tasks per read or write (interrupts and kernel threads excluded)"
)


def compute(jobs: Sequence[JobSample]) -> float | None:
    """CPU time over I/Os; None if the backend does not account CPU time."""
    jobs = sections_of(jobs)
    ios = sum(entry.ios for job in jobs for entry in job.data_directions())
    times = [(job.cpu_user_ns, job.cpu_system_ns) for job in jobs]
    if not ios or any(user is None or system is None for user, system in times):
        return None
    return sum((user or 0) + (system or 0) for user, system in times) / ios / NS_PER_US
