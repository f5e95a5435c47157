"""The bytes that a command reads from disks."""

from __future__ import annotations

from collections.abc import Sequence

from blklab.analysis.metrics._commands import summed_over_commands
from blklab.records.samples import JobSample

NAME = "bytes_read"
UNIT = "B"
BETTER = "lower"
DESCRIPTION = "bytes that a command's processes had fetched from disks"


def compute(jobs: Sequence[JobSample]) -> float | None:
    """Bytes of all processes; None for job files, and if the page cache had everything."""
    return summed_over_commands(jobs, lambda job: None if job.command is None else job.command.read_bytes)
