"""The weights of the recorded control groups, the policy that reads them, and what would change it.

Sources of the rules: block/bfq-cgroup.c, block/blk-iocost.c, Documentation/admin-guide/cgroup-v2.rst.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from blklab.quantities.formatting import join_names
from blklab.recordings.facts import CgroupFacts, DeviceFacts
from blklab.recordings.waits import Waits
from blklab.report.documents.parts import Part

_DEFAULT = 100
"""Of bfq's and io.cost's weights; cfq's was 500."""
_CFQ_DEFAULT = 500
_POLICIES = {
    "io.weight": "io.cost",
    "io.bfq.weight": "bfq",
    "blkio.bfq.weight": "bfq",
    "blkio.weight": "cfq",
}
_MOST_GROUPS = 6


class PriorityFinding(Part):
    """One reason."""

    subject: str
    """``scheduler``, ``classes``, ``submitter``, ``controller``, ``policy``, ``weights``, ``cgroups`` or
    ``queue``."""
    text: str
    remedy: str | None


def weight_findings(waits: Waits) -> list[PriorityFinding]:
    """The controller, the policy and the weights that the recorded groups had; empty if none were kept."""
    groups = {group.path: group for group in waits.facts.cgroups}
    if not groups:
        return []
    active = sorted({task.cgroup for task in waits.tasks if task.cgroup in groups})
    found = _controller(waits, groups, active)
    for device in waits.facts.devices:
        policies = _active_policies(device, groups, waits.facts.cgroup_version)
        found += _unread(device, policies, groups, waits.facts.cgroup_version)
        for attribute in policies:
            found += _levels(device, attribute, groups, active)
    return found + _classes_of_groups(groups)


def weight_of(group: CgroupFacts, attribute: str, device: DeviceFacts) -> int | None:
    """A group's weight for a device; None if the group has no such attribute."""
    lines = group.settings.get(attribute, "").split("\n")
    lines += group.settings.get(f"{attribute}_device", "").split("\n")
    weights = {words[0]: words[-1] for words in map(str.split, lines) if words}
    named = weights.get(_number(device)) or weights.get("default")
    bare = next((words for words in weights if words.isdigit()), None)
    text = named if named is not None else bare
    return int(text) if text is not None and text.isdigit() else None


def _number(device: DeviceFacts) -> str:
    return f"{device.number >> 20}:{device.number & 0xFFFFF}"


def _active_policies(device: DeviceFacts, groups: dict[str, CgroupFacts], version: int | None) -> list[str]:
    """The attributes whose weights divide this device."""
    policies = []
    if device.scheduler == "bfq":
        policies.append("blkio.bfq.weight" if version == 1 else "io.bfq.weight")
    if device.scheduler == "cfq":
        policies.append("blkio.weight")
    root = groups.get("/")
    lines = root.settings.get("io.cost.qos", "").splitlines() if root else []
    if any(line.split()[:1] == [_number(device)] and "enable=1" in line.split() for line in lines):
        policies.append("io.weight")
    return policies


def _controller(waits: Waits, groups: dict[str, CgroupFacts], active: list[str]) -> list[PriorityFinding]:
    """Cgroup v2 only: under v1 every group of the hierarchy has the controller."""
    if waits.facts.cgroup_version != 2:
        return []
    without = [
        path
        for path in active
        if path != "/" and "io" not in groups[path].settings.get("cgroup.controllers", "").split()
    ]
    if not without:
        return []
    parent = str(PurePosixPath(without[0]).parent)
    return [
        PriorityFinding(
            subject="controller",
            text=f"the io controller is not enabled for {_named(without)}: its I/O counts as that of the"
            " nearest group above that has it",
            remedy=f"write +io to cgroup.subtree_control of {parent} and of the groups above it;"
            " systemd does so for IOWeight= or IOAccounting=yes",
        )
    ]


def _unread(
    device: DeviceFacts, policies: list[str], groups: dict[str, CgroupFacts], version: int | None
) -> list[PriorityFinding]:
    """Weights that were set and that nothing reads on this device."""
    found = []
    for attribute, policy in _POLICIES.items():
        if attribute in policies:
            continue
        default = _CFQ_DEFAULT if policy == "cfq" else _DEFAULT
        weights = {path: weight_of(group, attribute, device) for path, group in groups.items()}
        chosen = [f"{path} {weight}" for path, weight in weights.items() if weight not in (None, default)]
        if chosen:
            reads = f"there {join_names([f'{_POLICIES[name]} reads {name}' for name in policies])}"
            found.append(
                PriorityFinding(
                    subject="policy",
                    text=f"{attribute} was set ({_named(chosen)}), but it belongs to {policy}, which was not"
                    f" active on {device.name}; {reads if policies else 'no policy read weights there'}",
                    remedy=_how_to_read(policy, policies, device, version),
                )
            )
    return found


def _how_to_read(policy: str, policies: list[str], device: DeviceFacts, version: int | None) -> str:
    if policies:
        return f"set {join_names(policies)} instead"
    if policy == "io.cost":
        return f"write '{_number(device)} enable=1' to io.cost.qos of the root group"
    if policy == "bfq":
        return f"select bfq for {device.name}"
    return f"select bfq and set {'blkio' if version == 1 else 'io'}.bfq.weight"


def _levels(
    device: DeviceFacts, attribute: str, groups: dict[str, CgroupFacts], active: list[str]
) -> list[PriorityFinding]:
    """At each level of the tree, the siblings that competed, with their weights."""
    siblings: dict[str, set[str]] = {}
    for path in active:
        for group in [PurePosixPath(path), *PurePosixPath(path).parents][:-1]:
            siblings.setdefault(str(group.parent), set()).add(str(group))
    found = []
    for parent, children in sorted(siblings.items()):
        weights = {
            path: weight_of(groups[path], attribute, device) for path in sorted(children & set(groups))
        }
        known = {path: weight for path, weight in weights.items() if weight is not None}
        if len(known) < 2:
            continue
        if len(set(known.values())) == 1:
            text = (
                f"below {parent}, all groups that did I/O had the same {attribute} on {device.name}"
                f" ({next(iter(known.values()))}): {_named(list(known))}"
            )
            remedy = f"raise {attribute} of the group that is to get more, or lower that of its siblings"
        else:
            shares = _named([f"{PurePosixPath(path).name} {weight}" for path, weight in known.items()])
            text = f"below {parent}, {_POLICIES[attribute]} divided {device.name} by {attribute}: {shares}"
            remedy = None
        found.append(PriorityFinding(subject="weights", text=text, remedy=remedy))
    return found


def _classes_of_groups(groups: dict[str, CgroupFacts]) -> list[PriorityFinding]:
    """``io.prio.class`` overrides the classes that tasks ask for (block/blk-ioprio.c)."""
    found = []
    for name in ("io.prio.class", "blkio.prio.class"):
        kept = {path: group.settings.get(name, "no-change") for path, group in groups.items()}
        chosen = [f"{path} {policy}" for path, policy in kept.items() if policy not in ("no-change", "")]
        if chosen:
            text = f"{name} changed the classes of these groups' I/Os: {_named(chosen)}"
            found.append(PriorityFinding(subject="classes", text=text, remedy=f"write no-change to {name}"))
    return found


def _named(names: list[str]) -> str:
    more = len(names) - _MOST_GROUPS
    return join_names([*names[:_MOST_GROUPS], f"{more} more"] if more > 0 else names)
