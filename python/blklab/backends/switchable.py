"""Workloads within which schedulers can take turns: one continuous load, the same from beginning to end."""

from __future__ import annotations

from blklab.backends.changeable import NOT_SWITCHED
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
    if workload.command is not None or workload.tool:
        what = workload.tool or "a command"
        return f"{what} makes its own load, which starts anew each time"
    of_whole = {
        NOT_SWITCHED: bool(conditions.changes),
        "it is decided by the latency of syncs, which wait for writes of the slots before": (
            workload.decide_by.startswith("sync_latency")
        ),
    }
    if reason := next((reason for reason, holds in of_whole.items() if holds), None):
        return reason
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
    synced = [option for option in ("fsync", "fdatasync", "sync") if job.options.get(option, "") not in _NO]
    reasons = {
        "replays a recording from its beginning to its end": job.replayed_ios is not None,
        "waits for the jobs before it (stonewall)": job.stonewall,
        f"waits for the job {job.wait_for} (wait_for)": job.wait_for is not None,
        "starts later than the load (startdelay)": bool(job.startdelay_ns),
        "ends after a number of bytes or I/Os (it is not time_based)": not job.time_based,
        f"syncs ({', '.join(synced)}), and a sync waits for writes of the slots before": bool(synced),
        "uses the page cache, which keeps what earlier slots have read and written": not job.direct,
        "reads back what it has written in slots before (verify)": job.verifies,
        "adapts its depth to the latency (latency_target)": job.options.get("latency_target", "") not in _NO,
    }
    return next((reason for reason, holds in reasons.items() if holds), None)
