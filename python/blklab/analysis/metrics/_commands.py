"""Measured commands and the sections of a load beside them, told apart for metrics of either."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from blklab.records.samples import JobSample


def sections_of(jobs: Sequence[JobSample]) -> list[JobSample]:
    """The sections of job files, without commands."""
    return [job for job in jobs if job.command is None]


def summed_over_commands(
    jobs: Sequence[JobSample], amount: Callable[[JobSample], float | None]
) -> float | None:
    """Sums an amount over all commands.

    Returns:
        None if there is no command, if one lacks the amount, or if the sum is 0, which has no ratio.
    """
    amounts = [amount(job) for job in jobs if job.command is not None]
    present = [value for value in amounts if value is not None]
    return sum(present) or None if len(present) == len(amounts) else None
