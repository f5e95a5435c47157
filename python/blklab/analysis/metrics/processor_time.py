"""The CPU time that a command uses."""

from __future__ import annotations

from collections.abc import Sequence

from blklab.analysis.metrics._commands import summed_over_commands
from blklab.quantities.units import NS_PER_US
from blklab.records.samples import JobSample

NAME = "processor_time"
UNIT = "us"
BETTER = "lower"
DESCRIPTION = "user and system CPU time of a command's processes (kernel threads excluded)"


def compute(jobs: Sequence[JobSample]) -> float | None:
    """CPU time of all processes; None for job files."""
    return summed_over_commands(jobs, _cpu_us)


def _cpu_us(job: JobSample) -> float | None:
    if job.cpu_user_ns is None or job.cpu_system_ns is None:
        return None
    return (job.cpu_user_ns + job.cpu_system_ns) / NS_PER_US
