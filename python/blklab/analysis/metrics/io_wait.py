"""The time that a command waits for disks."""

from __future__ import annotations

from collections.abc import Sequence

from blklab.analysis.metrics._commands import summed_over_commands
from blklab.quantities.units import NS_PER_US
from blklab.records.samples import JobSample

NAME = "io_wait"
UNIT = "us"
BETTER = "lower"
DESCRIPTION = "time that a command's tasks waited for block I/O, added up (delay accounting)"


def compute(jobs: Sequence[JobSample]) -> float | None:
    """Waits of all tasks; None for job files, and if the kernel does not account them."""
    return summed_over_commands(jobs, _wait_us)


def _wait_us(job: JobSample) -> float | None:
    waited_ns = None if job.command is None else job.command.io_delay_ns
    return None if waited_ns is None else waited_ns / NS_PER_US
