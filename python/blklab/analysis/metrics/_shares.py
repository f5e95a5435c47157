"""Who got how much: shares of competing processes, shared by the metrics of fairness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blklab.records.samples import JobSample


@dataclass(frozen=True)
class Competitor:
    """One process (or one section, where the backend does not tell its clones apart) among several."""

    bytes_per_second: float
    weight: float
    """What it was promised, in proportion."""


def competitors(jobs: Sequence[JobSample]) -> list[Competitor]:
    """All that competed; empty unless there are at least two, each with a promise and a run time.

    A process that moved nothing counts as if it had moved half of its section's mean I/O (half a page if the
    section moved nothing at all): the ratio of shares stays finite, and is the worst that could be told.
    """
    found: list[Competitor] = []
    for job in jobs:
        if job.promised_weight is None or not job.runtime_ns:
            return []
        moved = [sum(entry.bytes for entry in job.data_directions())]
        if job.clone_bytes is not None and len(job.clone_bytes) == job.clones:
            moved = job.clone_bytes
        ios = sum(entry.ios for entry in job.data_directions())
        least = sum(moved) / ios / 2 if ios and sum(moved) else 2048.0
        seconds = job.runtime_ns / 1e9
        found += [
            Competitor(max(float(amount), least) / seconds, job.promised_weight / len(moved))
            for amount in moved
        ]
    return found if len(found) > 1 else []


def count_of_processes(jobs: Sequence[JobSample]) -> int:
    """How many processes the sections had."""
    return sum(job.clones for job in jobs)
