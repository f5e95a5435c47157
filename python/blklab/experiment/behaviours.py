"""Observes single runs of an experiment, for what its schedulers did."""

from __future__ import annotations

import numpy as np

from blklab.analysis.behaviour import ServedRequests, behaviour_of
from blklab.records.behaviour import Behaviour
from blklab.simulator.timeline import FLUSH, MERGED, NO_HEAD, NO_JOB, SECTOR_BYTES, Timeline

BACKGROUND = "(background writeback)"
FLUSHES = "(cache flush)"


def behaviour_of_timeline(timeline: Timeline, workload: str, scheduler: str) -> Behaviour:
    """The counters of a simulated run."""
    rows = timeline.requests[(timeline.requests["flags"] & MERGED) == 0]
    names = [job.name for job in timeline.run.jobs]
    party = rows["job"].astype(np.int64)
    party[rows["job"] == NO_JOB] = len(names)
    party[rows["operation"] == FLUSH] = len(names) + 1
    one_disk = len(np.unique(rows["disk"])) <= 1
    # A request holds what was merged into it, which follows it in the table.
    owner = np.cumsum((timeline.requests["flags"] & MERGED) == 0) - 1
    sectors = np.bincount(owner, weights=timeline.requests["sectors"].astype(np.float64), minlength=len(rows))
    served = ServedRequests(
        names=[*names, BACKGROUND, FLUSHES],
        party=party,
        arrived_ns=rows["arrive_ns"].astype(np.float64),
        dispatched_ns=rows["dispatch_ns"].astype(np.float64),
        completed_ns=rows["complete_ns"].astype(np.float64),
        position_bytes=rows["sector"].astype(np.float64) * SECTOR_BYTES,
        bytes=sectors.astype(np.float64) * SECTOR_BYTES,
        span_ns=timeline.run.simulated_ns,
        has_head=one_disk and bool(len(rows)) and bool((rows["head_complete"] != NO_HEAD).all()),
        cpu_ns_per_io=_cpu_ns_per_io(timeline),
    )
    return behaviour_of(served, workload, scheduler, "simulation")


def _cpu_ns_per_io(timeline: Timeline) -> float | None:
    jobs = timeline.run.jobs
    ios = sum(entry.ios for job in jobs for entry in job.data_directions())
    if not ios or any(job.cpu_user_ns is None or job.cpu_system_ns is None for job in jobs):
        return None
    return sum((job.cpu_user_ns or 0) + (job.cpu_system_ns or 0) for job in jobs) / ios
