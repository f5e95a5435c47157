"""The share of the disk that each job was promised by its I/O priority and the weights of control groups.

The promise follows from the scheduler's rules:

* cfq gives a process of level *l* time slices in proportion to 9 - *l* (180 ms for level 0, 100 for 4, 40
  for 7): ``cfq_prio_slice``, block/cfq-iosched.c, Linux 4.16.
* bfq gives it the weight 10 · (8 - *l*): ``bfq_ioprio_to_weight``, block/bfq-wf2q.c, Linux 6.1.
* The other schedulers give levels no meaning. Schedulers that ignore priorities are still scored against the
  requested shares, by bfq's weights, which is the meaning of levels in current kernels.
* Groups divide the disk by their weights, no matter which of bfq, cfq and io.cost enforces them, and the
  processes of a group divide its share by their levels: Documentation/admin-guide/cgroup-v2.rst, Linux 6.1.

Without levels and groups all processes were promised the same. No promise is defined if real-time, idle and
ordinary jobs mix (their order is strict), if only some jobs are in groups, or if a job is throttled by its
own options (rates, think time) or runs after others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from blklab.records.samples import RunSample
from blklab.spec.plan import Cell
from blklab.spec.workloads import Job, Workload

DEFAULT_GROUP_WEIGHT = 100
"""Of cgroup v2 and of bfq under v1: CGROUP_WEIGHT_DFL, BFQ_WEIGHT_LEGACY_DFL."""
DEFAULT_CFQ_GROUP_WEIGHT = 500
"""Of ``blkio.weight`` under v1: CFQ_WEIGHT_LEGACY_DFL."""

_LEVELS = 8
_IDLE_CLASS = 3
_BEST_EFFORT_CLASS = 2
_HELD_BACK = re.compile(r"rate(_iops)?(_min)?|thinktime")
_WEIGHT_KEYS = {
    True: ("io.bfq.weight", "blkio.bfq.weight", "io.weight", "blkio.weight"),
    False: ("io.weight", "blkio.weight", "io.bfq.weight", "blkio.bfq.weight"),
}
"""Attributes in order of precedence, by whether the scheduler is bfq."""


def promised_weights(
    workload: Workload, scheduler: str, cgroups: Mapping[str, Mapping[str, str]]
) -> dict[str, float]:
    """The total weight of each section's clones, by section; empty if no promise is defined.

    Args:
        workload: Its sections compete.
        scheduler: The kernel's name of the scheduler.
        cgroups: Settings of control groups, as a specification has them.
    """
    jobs = workload.jobs
    if any(job.stonewall or job.startdelay_ns or _is_held_back(job) for job in jobs):
        return {}
    if len({_priority(job)[0] for job in jobs}) > 1:
        return {}
    own = {job.name: job.numjobs * _level_weight(job, scheduler) for job in jobs}
    groups = {job.name: job.cgroup for job in jobs}
    if all(group is None for group in groups.values()):
        return own
    if any(group is None for group in groups.values()):
        return {}
    given = {job.cgroup: job.cgroup_weight for job in jobs if job.cgroup_weight is not None}
    weights = {}
    for job in jobs:
        together = sum(own[other] for other, group in groups.items() if group == job.cgroup)
        settings = cgroups.get(job.cgroup or "", {})
        weight = _group_weight(settings, given.get(job.cgroup), scheduler)
        if weight is None:
            return {}
        weights[job.name] = weight * own[job.name] / together
    return weights


def with_promises(sample: RunSample, cell: Cell, cgroups: Mapping[str, Mapping[str, str]]) -> RunSample:
    """The sample with the weights under which its jobs competed."""
    weights = promised_weights(cell.workload, cell.scheduler.name, cgroups)
    jobs = [job.model_copy(update={"promised_weight": weights.get(job.name)}) for job in sample.jobs]
    return sample.model_copy(update={"jobs": jobs})


def _is_held_back(job: Job) -> bool:
    return any(_HELD_BACK.fullmatch(option) for option in job.options)


def _priority(job: Job) -> tuple[int, int]:
    """Class and level as the kernel sees them.

    fio takes class best-effort or level 0 if only the other one is given. Without either, the level follows
    from the nice value: task_nice_ioprio, include/linux/ioprio.h.
    """
    if job.prioclass is None and job.prio is None:
        return _BEST_EFFORT_CLASS, ((job.nice or 0) + 20) // 5
    return job.prioclass or _BEST_EFFORT_CLASS, job.prio or 0


def _level_weight(job: Job, scheduler: str) -> float:
    priority_class, level = _priority(job)
    if priority_class == _IDLE_CLASS:
        return 1.0  # the idle class has no levels
    if scheduler.startswith("cfq"):
        return float(_LEVELS + 1 - level)
    return float(_LEVELS - level)


def _group_weight(settings: Mapping[str, str], in_job: int | None, scheduler: str) -> float | None:
    """A group's weight; None if its setting cannot be parsed."""
    for key in _WEIGHT_KEYS[scheduler == "bfq"]:
        if key in settings:
            last = settings[key].split()[-1:]
            return float(last[0]) if last and last[0].isdigit() and int(last[0]) > 0 else None
    if in_job is not None:
        return float(in_job)
    return float(DEFAULT_CFQ_GROUP_WEIGHT if scheduler.startswith("cfq") else DEFAULT_GROUP_WEIGHT)
