"""The bytes that a command writes."""

from __future__ import annotations

from collections.abc import Sequence

from blklab.analysis.metrics._commands import summed_over_commands
from blklab.records.samples import JobSample

NAME = "bytes_written"
UNIT = "B"
BETTER = "lower"
DESCRIPTION = "bytes that a command's processes dirtied in the page cache or wrote directly"


def compute(jobs: Sequence[JobSample]) -> float | None:
    """Bytes of all processes; None for job files, and for a command that writes none."""
    return summed_over_commands(jobs, lambda job: None if job.command is None else job.command.written_bytes)
