"""Sums over a job's samples that several studies need."""

from __future__ import annotations

from blklab.records.samples import JobSample


def moved_bytes(job: JobSample) -> int:
    """Bytes that a job read and wrote."""
    return sum(entry.bytes for entry in job.data_directions())
