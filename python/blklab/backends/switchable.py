"""Workloads within which schedulers can take turns: one continuous load, the same from beginning to end."""

from __future__ import annotations

from blklab.spec.experiment import Conditions
from blklab.spec.workloads import Job, Workload

_NO = ("", "0", "none")
_ADAPTIVE_CONTROLLERS = ("io.cost", "io.latency", "ioband.")


def unswitchable_workload(workload: Workload, conditions: Conditions) -> str | None:
    """The reason why schedulers cannot take turns within a load, on any backend.

    Args:
        workload: The load.
        conditions: Of the experiment: the runtime of time-based jobs, and settings of control groups.

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
    if conditions.runtime_ns is None and len({job.runtime_ns for job in workload.jobs}) > 1:
        return "its jobs have different runtimes, so the load changes when one ends"
    for group, settings in conditions.cgroups.items():
        for name in settings:
            if name.startswith(_ADAPTIVE_CONTROLLERS):
                return f"{name} of {group} adapts over seconds, whichever scheduler is in force"
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
