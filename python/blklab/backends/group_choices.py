"""Schedulers that bring settings of control groups: the checks that all backends share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from blklab.errors import SpecError, UnknownNameError
from blklab.spec.experiment import Conditions
from blklab.spec.group_settings import ROOT_GROUP, cost_is_enabled, group_settings, words_of
from blklab.spec.schedulers import SchedulerChoice
from blklab.spec.workloads import Workload

OF_VERSION_2 = frozenset({"io.weight", "io.bfq.weight", "io.max", "io.cost.qos", "io.cost.model"})
"""Attributes under cgroup v2 that tuning knows."""


def change_groups(choices: Sequence[SchedulerChoice]) -> bool:
    """Whether some choice brings settings of control groups."""
    return any(choice.of_groups for choice in choices)


def check_group_choices(
    conditions: Conditions, choices: Sequence[SchedulerChoice], workloads: Sequence[Workload]
) -> None:
    """Makes sure that the settings of control groups, of all runs and of choices, can have an effect.

    Raises:
        UnknownNameError: if no job joins a group.
        SpecError: if a job file fixes the weight that a choice sets.
    """
    jobs = [job for workload in workloads for job in workload.jobs if job.cgroup is not None]
    joined = list(dict.fromkeys(job.cgroup for job in jobs if job.cgroup is not None))
    known = dict.fromkeys([*conditions.cgroups, *joined])
    for group in conditions.cgroups:
        if group != ROOT_GROUP and not any(_is_within(name, group) for name in joined):
            raise _joined_by_none(f"--cgroup {group}", group, joined)
    fixed = {job.cgroup: job for job in jobs if job.cgroup_weight is not None}
    for choice in choices:
        for place in group_settings(choice.of_groups):
            if place.group != ROOT_GROUP and place.group not in known:
                groups = [name for name in known if name != ROOT_GROUP]
                raise _joined_by_none(choice.label, place.group, groups)
            if place.is_weight and place.group in fixed:
                job = fixed[place.group]
                raise SpecError(
                    f"{choice.label}: job {job.name} fixes the weight of its control group {place.group!r} "
                    f"at {job.cgroup_weight} (cgroup_weight)",
                    hint=f"take cgroup_weight out, and give --cgroup {place.group}:io.weight="
                    f"{job.cgroup_weight} if that share is promised",
                )


def _is_within(group: str, outer: str) -> bool:
    group, outer = group.strip("/"), outer.strip("/")
    return group == outer or group.startswith(f"{outer}/")


def _joined_by_none(what: str, group: str, groups: Sequence[str]) -> UnknownNameError:
    return UnknownNameError(
        f"{what}: no job joins the control group {group!r}",
        hint=f"jobs join {', '.join(groups)}" if groups else "a job joins one with cgroup=GROUP",
    )


def skewing_shares(
    choices: Sequence[SchedulerChoice], conditions: Mapping[str, Mapping[str, str]]
) -> list[str]:
    """Notes on choices under which groups do not share the disk by weight, although weights have an effect.

    Args:
        choices: The schedulers, with what they bring.
        conditions: Settings of control groups that all of them have.
    """
    notes = []
    skewed = [
        choice.label
        for choice in choices
        if choice.name == "bfq"
        and (choice.iosched.get("low_latency") != "0" or choice.iosched.get("strict_guarantees") != "1")
    ]
    if skewed:
        notes.append(
            f"shares by weight are skewed under {', '.join(skewed)}: bfq favours processes that look "
            "interactive, at first all of them for up to 25 s (low_latency=0 ends that), and a disk with "
            "several commands in flight serves them in an order of its own (strict_guarantees=1 ends that)"
        )
    guessing = [
        choice.label for choice in choices if _guesses_costs(choice.groups_over(conditions).get(ROOT_GROUP))
    ]
    if guessing:
        notes.append(
            f"weights may have no effect under {', '.join(guessing)}: io.cost goes by the kernel's guess at "
            "the disk's speed, and shares a slower disk equally; `blklab iocost` measures io.cost.model"
        )
    return notes


def _guesses_costs(of_disk: Mapping[str, str] | None) -> bool:
    """Whether io.cost is on without a model of the disk."""
    if of_disk is None or not cost_is_enabled({ROOT_GROUP: of_disk}):
        return False
    return not words_of(of_disk.get("io.cost.model", "")).keys() - {"ctrl", "model"}
