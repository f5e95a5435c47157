"""Jobs that nothing ends but the device, which is longer than anybody waits for. Pure."""

from __future__ import annotations

from blklab.errors import JobFileError
from blklab.linux.scratch.layout import extents_on_device
from blklab.quantities.units import format_bytes
from blklab.spec.workloads import Job, Workload

_LIMITS = ("size", "filesize", "io_size", "number_ios", "runtime")
MOST_IOS = 20_000_000
"""I/Os that a model may do for a job that does not say how many."""


def refuse_endless(workload: Workload, device_bytes: int) -> None:
    """Refuses jobs that say neither how much nor how long, and that would go on for millions of I/Os.

    Raises:
        JobFileError: with the amount, at the first such job.
    """
    for job, clones in zip(workload.jobs, _covered(workload, device_bytes), strict=True):
        nr_ios = sum(clones) // job.block_size_bytes
        if not any(option in job.options for option in _LIMITS) and nr_ios > MOST_IOS:
            raise JobFileError(
                f"job {job.name} has neither size nor runtime: it comes to {format_bytes(sum(clones))}, "
                f"{nr_ios / 1e6:.0f} million I/Os",
                source=workload.source,
                line=job.line,
                hint="add size=1g or the like, or time_based with runtime=30s",
            )


def _covered(workload: Workload, device_bytes: int) -> list[list[int]]:
    """Bytes that each clone of each job covers."""
    limitless: list[Job] = [job for job in workload.jobs if not any(name in job.options for name in _LIMITS)]
    if not limitless:
        return [[] for _ in workload.jobs]
    regions = extents_on_device(workload, "the device", device_bytes)
    return [[region.size_bytes for region in clones] for clones in regions]
