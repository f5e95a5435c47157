"""The warnings of a session on this machine's disks before the first run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from blklab.backends.group_choices import skewing_shares
from blklab.backends.protocol import SessionOptions
from blklab.linux.cgroups.settings import CgroupSetting, honors_weights
from blklab.linux.disks.arrays import array_troubles
from blklab.linux.doctor.advice.encryption import hiding_mappings
from blklab.linux.doctor.advice.group_weights import OF_BFQ, OF_COST
from blklab.linux.machine.kernel_log import why_unreadable
from blklab.linux.processes.io_priority import ignores_priorities
from blklab.quantities.formatting import join_schedulers
from blklab.spec.changes import GroupChange, PriorityChange
from blklab.spec.group_settings import cost_is_enabled
from blklab.spec.schedulers import SchedulerChoice
from blklab.spec.workloads import Workload


def warnings_on_disks(disks: Sequence[Path]) -> list[str]:
    """Of the disks, whatever runs on them.

    Args:
        disks: Their directories in sysfs.
    """
    warnings = [
        f"{trouble}; what is measured now is not what the whole array does"
        for trouble in array_troubles(disks)
    ]
    unreadable = why_unreadable()
    if unreadable is not None:
        warnings.append(
            f"the kernel's log cannot be read ({unreadable}), so timeouts and resets of the disk that happen "
            "during a run stay unnoticed"
        )
    return warnings


def warnings_on_weights(
    options: SessionOptions, settings: Sequence[CgroupSetting], choices: Sequence[SchedulerChoice]
) -> list[str]:
    """Of weights of control groups that a scheduler ignores, or follows only roughly."""
    attributes = _group_attributes(options, settings, choices)
    if not _has_weights(attributes):
        return []
    warnings = []
    ignoring = [
        choice.label
        for choice in choices
        if not honors_weights(choice.name, choice.groups_over(options.cgroups))
    ]
    if ignoring:
        warnings.append(f"control group weights have no effect under {join_schedulers(ignoring)}")
    uncosted = [
        choice.label
        for choice in choices
        if choice.name == "bfq" and not cost_is_enabled(choice.groups_over(options.cgroups))
    ]
    if OF_COST in attributes and OF_BFQ not in attributes and uncosted:
        warnings.append(
            f"{OF_COST} is io.cost's and has no effect under {', '.join(uncosted)} without io.cost; "
            f"bfq's is {OF_BFQ}"
        )
    return warnings + skewing_shares(choices, options.cgroups)


def warnings_on_priorities(
    options: SessionOptions, choices: Sequence[SchedulerChoice], workload: Workload
) -> list[str]:
    """Of I/O priorities that a scheduler ignores."""
    ignoring = [choice.label for choice in choices if ignores_priorities(choice.name)]
    if not ignoring or not _has_priorities(options, workload):
        return []
    return [f"{workload.name}: I/O priorities have no effect under {join_schedulers(ignoring)}"]


def warnings_on_encryption(
    options: SessionOptions,
    settings: Sequence[CgroupSetting],
    choices: Sequence[SchedulerChoice],
    workloads: Sequence[Workload],
    *,
    disks: Sequence[Path],
    stack: str,
) -> list[str]:
    """Of dm-crypt's threads, where shares of the disk were asked for.

    Args:
        options: Options of all runs.
        settings: Settings of control groups.
        choices: The schedulers.
        workloads: The loads.
        disks: The disks' directories in sysfs.
        stack: The devices between the target and the disks, as the target's description words them.
    """
    weights = _has_weights(_group_attributes(options, settings, choices))
    if not weights and not any(_has_priorities(options, workload) for workload in workloads):
        return []
    hiding = [name for name in hiding_mappings(disks) if f"(encrypted {name})" in stack]
    if not hiding:
        return []
    whose = f"writes through {', '.join(hiding)} come from dm-crypt's threads"
    return [f"{whose}: weights and I/O priorities do not apply to them"]


def _group_attributes(
    options: SessionOptions, settings: Sequence[CgroupSetting], choices: Sequence[SchedulerChoice]
) -> list[str]:
    changes = [one.attribute for one in options.changes if isinstance(one, GroupChange)]
    of_choices = [name for choice in choices for name in choice.of_groups]
    return [*(setting.attribute for setting in settings), *changes, *of_choices]


def _has_weights(attributes: Sequence[str]) -> bool:
    return any("weight" in attribute for attribute in attributes)


def _has_priorities(options: SessionOptions, workload: Workload) -> bool:
    changed = any(isinstance(change, PriorityChange) for change in options.changes)
    given = {(job.prioclass, job.prio) for job in workload.jobs}
    if workload.replays:
        # Recorded tasks have one in any case.
        return changed or len(given) > 1
    return changed or given != {(None, None)}
