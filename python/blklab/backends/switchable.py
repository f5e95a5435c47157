"""Workloads within which schedulers can take turns: one continuous load, the same from beginning to end."""

from __future__ import annotations

from blklab.spec.workloads import Job, Workload

_NO = ("", "0", "none")


def unswitchable_workload(workload: Workload, runtime_ns: int | None) -> str | None:
    """The reason why schedulers cannot take turns within a load, on any backend.

    Args:
        workload: The load.
        runtime_ns: Runtime of time-based jobs; None for that of the job file.

    Returns:
        One line for people; None if they can take turns.
    """
    if workload.tool:
        return f"{workload.tool} makes its own load, which starts anew each time"
    if workload.decide_by.startswith("sync_latency"):
        return "it is decided by the latency of syncs, which wait for writes of the slots before"
    for job in workload.jobs:
        if reason := _unswitchable_job(job):
            return f"job {job.name} {reason}"
    if runtime_ns is None and len({job.runtime_ns for job in workload.jobs}) > 1:
        return "its jobs have different runtimes, so the load changes when one ends"
    return None


def _unswitchable_job(job: Job) -> str | None:
    if job.stonewall:
        return "waits for the jobs before it (stonewall)"
    if job.startdelay_ns:
        return "starts later than the load (startdelay)"
    if not job.time_based:
        return "ends after a number of bytes or I/Os (it is not time_based)"
    for option in ("fsync", "fdatasync", "sync"):
        if job.options.get(option, "") not in _NO:
            return f"syncs ({option}), and a sync waits for writes of the slots before"
    if not job.direct:
        return "uses the page cache, which keeps what earlier slots have read and written"
    return None
