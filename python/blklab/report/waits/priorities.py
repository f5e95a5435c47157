"""Why priorities and weights had an effect or none: scheduler, classes, submitters, control groups."""

from __future__ import annotations

from pathlib import PurePosixPath

from blklab.linux.processes.io_priority import ignores_priorities, priority_support
from blklab.quantities.formatting import join_names, percent_text
from blklab.recordings.facts import DeviceFacts
from blklab.recordings.kernel_threads import is_kernel_thread
from blklab.recordings.trace import UNKNOWN_IOPRIO
from blklab.recordings.waits import TaskWaits, Waits
from blklab.report.waits.weights import PriorityFinding, weight_findings

_CLASSES = {0: "none", 1: "rt", 2: "be", 3: "idle"}
_FEW = 0.01
"""A share that cannot matter."""


def priority_findings(waits: Waits) -> list[PriorityFinding]:
    """The links of the chain from a weight to the device that the recording shows.

    Sources of the rules: block/bfq-iosched.c, block/mq-deadline.c, block/blk-iocost.c.
    """
    if not waits.facts.capture or not waits.tasks:
        return []
    found = [_scheduler(device) for device in waits.facts.devices]
    found += _classes(waits)
    found += _levels_ignored(waits)
    found += _submitters(waits)
    found += weight_findings(waits)
    found += _cgroups(waits)
    found += _queue(waits)
    return found


def priority_text(ioprio: int) -> str:
    """``be/4``, ``idle``, ``none`` or ``unknown``."""
    if ioprio == UNKNOWN_IOPRIO:
        return "unknown"
    name = _CLASSES.get(ioprio >> 13, "?")
    return name if name in ("none", "idle") else f"{name}/{ioprio & 7}"


def _scheduler(device: DeviceFacts) -> PriorityFinding:
    name = device.scheduler or "no scheduler"
    support = priority_support(device.scheduler)
    text = f"{device.name} ran {name}, which honours {support}"
    if device.scheduler == "bfq":
        return PriorityFinding(
            subject="scheduler", text=f"{text} and the weights of control groups (bfq.weight)", remedy=None
        )
    remedy = "bfq honours classes, levels and weights; io.cost honours io.weight under any scheduler"
    return PriorityFinding(
        subject="scheduler",
        text=f"{text}, and no weights of control groups",
        remedy=remedy if ignores_priorities(device.scheduler) else None,
    )


def _classes(waits: Waits) -> list[PriorityFinding]:
    known = {priority_text(number): ios for number, ios in waits.all.ioprio if number != UNKNOWN_IOPRIO}
    if len(known) > 1:
        shares = [f"{percent_text(ios / waits.all.ios)} {name}" for name, ios in known.items()]
        return [
            PriorityFinding(subject="classes", text=f"I/Os by priority: {', '.join(shares)}", remedy=None)
        ]
    if not known:
        return []
    return [
        PriorityFinding(
            subject="classes",
            text=f"all I/Os had the same priority ({next(iter(known))}), so it could not tell them apart",
            remedy="ionice sets a task's class and level",
        )
    ]


def _levels_ignored(waits: Waits) -> list[PriorityFinding]:
    """Levels that differ within a class, under a scheduler that reads the class only."""
    used = {number for number, _ in waits.all.ioprio if number != UNKNOWN_IOPRIO}
    classes = {number >> 13 for number in used}
    if len(used) <= len(classes):
        return []
    names = ", ".join(priority_text(number) for number in sorted(used))
    return [
        PriorityFinding(
            subject="classes",
            text=f"levels differed ({names}), and {device.scheduler} on {device.name} reads classes only",
            remedy="give the tasks different classes, or select bfq",
        )
        for device in waits.facts.devices
        if priority_support(device.scheduler) == "classes only"
    ]


def _submitters(waits: Waits) -> list[PriorityFinding]:
    """Buffered writes reach the block layer through the kernel's own threads."""
    kernel = [task for task in waits.tasks if is_kernel_thread(task.command)]
    writes = sum(_written(task) for task in waits.tasks)
    by_kernel = sum(_written(task) for task in kernel)
    if not writes or by_kernel / writes < _FEW:
        return []
    busiest = sorted(kernel, key=_written, reverse=True)[:3]
    in_root = sum(_written(task) for task in kernel if task.cgroup in ("", "/"))
    where = f", {percent_text(in_root / by_kernel)} of it charged to the root group" if in_root else ""
    version = waits.facts.cgroup_version
    remedy = (
        "on cgroup v1 writeback always belongs to the root group: use direct I/O, or cgroup v2"
        if version == 1
        else "writeback follows the group that dirtied the page on ext4, btrfs and xfs only, and only if "
        "both memory and io are enabled for it"
    )
    return [
        PriorityFinding(
            subject="submitter",
            text=f"kernel threads submitted {percent_text(by_kernel / writes)} of what was written"
            f" (writeback){where}: the class of the task that wrote the data does not count; really submitted"
            f" by {join_names([_submitter(task, writes) for task in busiest])}",
            remedy=remedy,
        )
    ]


def _submitter(task: TaskWaits, writes: int) -> str:
    """``kworker/u8:2 (be/4, group /, 60%)``."""
    main = max(task.ioprio, key=lambda entry: entry[1])[0] if task.ioprio else UNKNOWN_IOPRIO
    group = task.cgroup or "unknown"
    return f"{task.command} ({priority_text(main)}, group {group}, {percent_text(_written(task) / writes)})"


def _written(task: TaskWaits) -> int:
    return sum(count.bytes for count in task.operations if count.operation == "write")


def _cgroups(waits: Waits) -> list[PriorityFinding]:
    groups: dict[str, int] = {}
    for task in waits.tasks:
        if task.cgroup:
            groups[task.cgroup] = groups.get(task.cgroup, 0) + task.ios
    if not groups:
        return []
    parents = {str(PurePosixPath(group).parent) for group in groups}
    if len(groups) == 1:
        return [
            PriorityFinding(
                subject="cgroups",
                text=f"all I/O came from one control group ({next(iter(groups))}): weights divided nothing",
                remedy="give each service a group of its own, as systemd does",
            )
        ]
    if len(parents) > 1 and not waits.facts.cgroups:
        busiest = sorted(groups, key=lambda group: -groups[group])[:4]
        return [
            PriorityFinding(
                subject="cgroups",
                text="weights count among siblings only, and the groups that did I/O have different parents: "
                f"{join_names(busiest)}",
                remedy="set the weights of the highest groups that differ",
            )
        ]
    return []


def _queue(waits: Waits) -> list[PriorityFinding]:
    """A scheduler can only order what waits in its queue."""
    if not (waits.issues_known and waits.queues_known) or not waits.all.latency_ns.sum:
        return []
    share = waits.all.queue_ns.sum / waits.all.latency_ns.sum
    deep = [device.in_device.p99 for device in waits.devices if device.in_device is not None]
    if share >= 0.1 or not deep:
        return []
    return [
        PriorityFinding(
            subject="queue",
            text=f"only {100 * share:.1f} % of all waiting was in the queue, where a scheduler can choose;"
            f" the rest was in the device, with up to {max(deep)} I/Os at a time",
            remedy="limit what is in the device at a time: a smaller nr_requests, bfq's idling, or io.cost",
        )
    ]
