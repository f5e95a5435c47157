"""Control groups for jobs: weights, limits and latency targets of I/O, under cgroup v1 (blkio) and v2 (io).

All groups of a run are children of one group of ours, so that they compete with each other and leave
everybody else's alone. Settings that go by device are written once for each leaf disk. Every write is read
back.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from blklab.errors import JobFileError, RequirementError, TunableError, UsageError
from blklab.linux.disks import Disk
from blklab.linux.mounts import parse_mountinfo
from blklab.workloads import Workload

if TYPE_CHECKING:
    from blklab.linux.journal import Journal

ROOT_GROUP = "/"
"""The name under which a specification sets attributes of the root group."""

_GROUP_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_ATTRIBUTE = re.compile(r"(?:blkio|io)\.[a-z0-9_.]+")
_DEVICE_NUMBER = re.compile(r"\d+:\d+")
_BY_DEVICE_V2 = ("io.max", "io.latency", "io.cost.qos", "io.cost.model")
_ROOT_ONLY = ("io.cost.qos", "io.cost.model")
_WEIGHTS = {1: ("blkio.bfq.weight", "blkio.weight"), 2: ("io.bfq.weight", "io.weight")}
"""bfq's weight, and that of cfq (v1) or io.cost (v2)."""

_KERNEL_OPTIONS = {
    "io.weight": "CONFIG_BLK_CGROUP_IOCOST",
    "io.cost.qos": "CONFIG_BLK_CGROUP_IOCOST",
    "io.cost.model": "CONFIG_BLK_CGROUP_IOCOST",
    "io.latency": "CONFIG_BLK_CGROUP_IOLATENCY",
    "io.prio.class": "CONFIG_BLK_CGROUP_IOPRIO",
    "io.max": "CONFIG_BLK_DEV_THROTTLING",
    "io.bfq.weight": "CONFIG_BFQ_GROUP_IOSCHED",
    "blkio.bfq.weight": "CONFIG_BFQ_GROUP_IOSCHED",
    "blkio.weight": "CONFIG_CFQ_GROUP_IOSCHED, until Linux 5.0",
}
_COUNTERPARTS = {
    1: {
        "io.weight": "blkio.bfq.weight (bfq)",
        "io.bfq.weight": "blkio.bfq.weight",
        "io.max": "blkio.throttle.read_bps_device and its like",
        "blkio.weight": "blkio.bfq.weight (bfq)",
    },
    2: {
        "blkio.weight": "io.weight (io.cost) or io.bfq.weight (bfq)",
        "blkio.bfq.weight": "io.bfq.weight",
        "io.weight": "io.bfq.weight, which is bfq's; io.weight is that of io.cost",
        "io.bfq.weight": "io.weight, which is that of io.cost; io.bfq.weight is bfq's",
    },
}


@dataclass(frozen=True)
class Hierarchy:
    """Where I/O is controlled on this machine."""

    version: int
    """1 (blkio) or 2 (io)."""
    root: Path


@dataclass(frozen=True)
class Setting:
    """One write to one attribute of one group."""

    group: str
    """Name in the specification; `ROOT_GROUP` for the root."""
    attribute: str
    value: str
    """As written, with the device number where the attribute goes by device."""
    optional: bool = False
    """A weight that is written to whichever of several attributes the kernel has."""


def find_hierarchy(proc: Path = Path("/proc")) -> Hierarchy:
    """Finds the hierarchy that controls I/O.

    Raises:
        RequirementError: if none does.
    """
    try:
        mounts = parse_mountinfo((proc / "self" / "mountinfo").read_text())
    except OSError:
        mounts = []
    for mount in mounts:
        if mount.filesystem == "cgroup" and "blkio" in mount.super_options.split(","):
            return Hierarchy(1, Path(mount.mount_point))
    for mount in mounts:
        root = Path(mount.mount_point)
        if mount.filesystem == "cgroup2" and "io" in _words(root / "cgroup.controllers"):
            return Hierarchy(2, root)
    raise RequirementError(
        "no control group hierarchy with the I/O controller is mounted",
        hint="mount one: mount -t cgroup2 none /sys/fs/cgroup",
    )


def wanted_settings(
    hierarchy: Hierarchy,
    groups: Mapping[str, Mapping[str, str]],
    workloads: Iterable[Workload],
    leaves: Sequence[Disk],
) -> list[Setting]:
    """All that is to be written for a run, in order.

    Raises:
        UsageError: for a group or an attribute that cannot be.
        JobFileError: if jobs give one group different weights.
    """
    numbers = device_numbers(leaves)
    settings = []
    for group, attributes in groups.items():
        if group != ROOT_GROUP:
            _check_group_name(group)
        for attribute, value in attributes.items():
            _check_attribute(hierarchy, group, attribute)
            values = [value]
            if _by_device(attribute) and not _DEVICE_NUMBER.match(value):
                values = [f"{number} {value}" for number in numbers]
            settings += [Setting(group, attribute, each) for each in values]
    for group, weight in _job_weights(workloads).items():
        settings += [
            Setting(group, attribute, str(weight), optional=True) for attribute in _WEIGHTS[hierarchy.version]
        ]
    return settings


def group_names(groups: Iterable[str], workloads: Iterable[Workload]) -> list[str]:
    """The groups that have to be created, each once.

    Raises:
        UsageError: for a name that cannot be.
        JobFileError: if a job could not join its group.
    """
    names = [group for group in groups if group != ROOT_GROUP]
    for workload in workloads:
        for job in workload.jobs:
            if job.cgroup is None:
                if job.cgroup_weight is not None:
                    raise _job_error(workload, job.name, "cgroup_weight", "cgroup_weight needs a cgroup")
                continue
            if job.options.get("thread", "0") != "0":
                raise _job_error(
                    workload, job.name, "cgroup", "a thread cannot join a control group of its own"
                )
            names.append(job.cgroup)
    for name in names:
        _check_group_name(name)
    return list(dict.fromkeys(names))


def acts_on_weights(scheduler: str, groups: Mapping[str, Mapping[str, str]]) -> bool:
    """Whether weights of groups make a difference under a scheduler (bfq's own, or io.cost with any)."""
    return scheduler in ("bfq", "cfq") or "enable=1" in groups.get(ROOT_GROUP, {}).get("io.cost.qos", "")


def device_numbers(leaves: Sequence[Disk]) -> list[str]:
    """``MAJOR:MINOR`` of each leaf; a hidden multipath path counts as the device it belongs to."""
    numbers = []
    for leaf in leaves:
        number = leaf.device_number
        if not number:
            device = leaf.dev_path.stat().st_rdev
            number = f"{os.major(device)}:{os.minor(device)}"
        numbers.append(number)
    return list(dict.fromkeys(numbers))


class RunGroups:
    """The control groups of one run."""

    def __init__(self, hierarchy: Hierarchy, run_id: str) -> None:
        self.hierarchy = hierarchy
        self.parent = hierarchy.root / f"blklab-{run_id}"

    def folder(self, group: str) -> Path:
        """The folder of a group."""
        return self.hierarchy.root if group == ROOT_GROUP else self.parent / group

    def processes_file(self, group: str) -> Path:
        """The file that takes the ids of processes that join a group."""
        return self.folder(group) / "cgroup.procs"

    def commands(self, names: Sequence[str], settings: Sequence[Setting]) -> list[str]:
        """What `create` does, as shell commands."""
        lines = []
        if self.hierarchy.version == 2:
            lines.append(f"echo +io > {_quoted(self.hierarchy.root / 'cgroup.subtree_control')}")
        lines.append(f"mkdir {_quoted(self.parent)}")
        if self.hierarchy.version == 2:
            lines.append(f"echo +io > {_quoted(self.parent / 'cgroup.subtree_control')}")
        lines += [f"mkdir {_quoted(self.folder(name))}" for name in names]
        for setting in settings:
            path = _quoted(self.folder(setting.group) / setting.attribute)
            guard = f"[ ! -e {path} ] || " if setting.optional else ""
            lines.append(f"{guard}echo {shlex.quote(setting.value)} > {path}")
        return lines

    def create(self, journal: Journal, names: Sequence[str], settings: Sequence[Setting]) -> None:
        """Creates the groups and sets their attributes; the journal undoes it.

        Raises:
            TunableError: if the kernel lacks an attribute, refuses a value, or keeps another one.
        """
        if self.hierarchy.version == 2:
            self._pass_on_control(journal)
        journal.own_cgroup(self.parent)
        if self.hierarchy.version == 2:
            _write(self.parent / "cgroup.subtree_control", "+io")
        for name in names:
            journal.own_cgroup(self.folder(name))
        undo: dict[Path, list[str]] = {}
        for setting in settings:
            path = self.folder(ROOT_GROUP) / setting.attribute
            if setting.group == ROOT_GROUP and path.exists():
                undo.setdefault(path, []).extend(undo_writes(path, setting.value))
        for path, texts in undo.items():
            journal.protect_attribute(path, undo=texts)
        written: dict[str, int] = {}
        for setting in settings:
            path = self.folder(setting.group) / setting.attribute
            if setting.optional and not path.exists():
                written.setdefault(setting.group, 0)
                continue
            self._set(path, setting)
            written[setting.group] = written.get(setting.group, 0) + 1
        for group in (group for group, count in written.items() if not count):
            wanted = " or ".join(_WEIGHTS[self.hierarchy.version])
            raise TunableError(
                f"this kernel has no weight of I/O for the control group {group!r}",
                hint=f"it needs {wanted} (CONFIG_BFQ_GROUP_IOSCHED or CONFIG_BLK_CGROUP_IOCOST)",
            )

    def read_back(self, settings: Sequence[Setting]) -> dict[str, str]:
        """What is in force: ``cgroup/GROUP/ATTRIBUTE`` with the content of the file on one line."""
        found = {}
        for setting in settings:
            path = self.folder(setting.group) / setting.attribute
            if path.exists():
                name = "" if setting.group == ROOT_GROUP else f"{setting.group}/"
                found[f"cgroup/{name}{setting.attribute}"] = "; ".join(path.read_text().split("\n")).strip(
                    "; "
                )
        return found

    def _pass_on_control(self, journal: Journal) -> None:
        """The root hands the controller down, unless it does so already."""
        control = self.hierarchy.root / "cgroup.subtree_control"
        if "io" not in _words(control):
            journal.protect_attribute(control, undo=["-io"])
            _write(control, "+io")

    def _set(self, path: Path, setting: Setting) -> None:
        if not path.exists():
            raise self._missing(setting)
        place = (
            "the root control group"
            if setting.group == ROOT_GROUP
            else f"the control group {setting.group!r}"
        )
        try:
            _write(path, setting.value)
        except OSError as error:
            raise TunableError(
                f"{place}: the kernel refused {setting.attribute} = {setting.value}"
                f" ({(error.strerror or str(error)).lower()})",
                hint=_value_hint(setting.attribute),
            ) from error
        content = path.read_text()
        if not _in_force(content, setting.value):
            kept = " ".join(content.split()) or "nothing"
            raise TunableError(
                f"{place}: asked for {setting.attribute} = {setting.value}, the kernel kept {kept}"
            )

    def _missing(self, setting: Setting) -> TunableError:
        version, attribute = self.hierarchy.version, setting.attribute
        message = f"this kernel has no {attribute} under cgroup v{version}"
        other_version = (attribute.startswith("io.")) == (version == 1)
        counterpart = _COUNTERPARTS[version].get(attribute)
        option = _KERNEL_OPTIONS.get(attribute)
        if other_version and counterpart is None and attribute.startswith("blkio.throttle."):
            counterpart = "io.max"
        hints = []
        if counterpart is not None:
            hints.append(f"here it would be {counterpart}")
        elif other_version:
            hints.append(f"it belongs to cgroup v{3 - version}")
        if option is not None and not other_version:
            hints.append(f"{attribute} comes with {option}")
        return TunableError(message, hint="; ".join(hints) or None)


def undo_writes(path: Path, value: str) -> list[str]:
    """What to write to an attribute of the root group to bring back what it has now."""
    match = _DEVICE_NUMBER.match(value)
    if match is None:
        return [path.read_text().strip()]
    number = match[0]
    before = next((line for line in path.read_text().splitlines() if line.startswith(f"{number} ")), None)
    if path.name in _ROOT_ONLY:
        # Giving any parameter means ctrl=user, so a line that says ctrl=auto cannot be written as it stands.
        words = (before or f"{number} enable=0 ctrl=auto").split()
        if "ctrl=user" not in words:
            words = [word for word in words if word == number or word.startswith(("enable=", "ctrl="))]
        if path.name == "io.cost.model":
            words = [word for word in words if not word.startswith("enable=")]
        return [" ".join(words)]
    if before is not None:
        return [before]
    unset = {"io.max": "rbps=max wbps=max riops=max wiops=max", "io.latency": "target=0"}
    return [f"{number} {unset.get(path.name, '0')}"]


def _by_device(attribute: str) -> bool:
    return attribute in _BY_DEVICE_V2 or attribute.endswith("_device")


def _job_weights(workloads: Iterable[Workload]) -> dict[str, int]:
    weights: dict[str, int] = {}
    for workload in workloads:
        for job in workload.jobs:
            if job.cgroup is None or job.cgroup_weight is None:
                continue
            if weights.setdefault(job.cgroup, job.cgroup_weight) != job.cgroup_weight:
                raise _job_error(
                    workload,
                    job.name,
                    "cgroup_weight",
                    f"the control group {job.cgroup!r} has the weight {weights[job.cgroup]} already",
                )
    return weights


def _job_error(workload: Workload, job_name: str, option: str, message: str) -> JobFileError:
    job = next(job for job in workload.jobs if job.name == job_name)
    return JobFileError(
        f"job {job_name}: {message}", source=workload.source, line=job.option_lines.get(option), option=option
    )


def _check_group_name(name: str) -> None:
    if _GROUP_NAME.fullmatch(name) is None:
        raise UsageError(
            f"{name!r} cannot be the name of a control group", hint="use letters, digits, '_', '-' and '.'"
        )


def _check_attribute(hierarchy: Hierarchy, group: str, attribute: str) -> None:
    if _ATTRIBUTE.fullmatch(attribute) is None:
        raise UsageError(
            f"control group {group!r}: {attribute!r} is no attribute of the I/O controller",
            hint="these begin with io. (cgroup v2) or blkio. (v1)",
        )
    if hierarchy.version == 2 and attribute in _ROOT_ONLY and group != ROOT_GROUP:
        raise UsageError(
            f"control group {group!r}: {attribute} belongs to the root group",
            hint='put it under [cgroups."/"]',
        )


def _value_hint(attribute: str) -> str | None:
    if attribute.endswith("bfq.weight"):
        return "bfq takes weights from 1 to 1000"
    if attribute == "io.weight":
        return "io.weight takes weights from 1 to 10000"
    return None


def _in_force(content: str, value: str) -> bool:
    """Whether an attribute's content says what was written."""
    match = _DEVICE_NUMBER.match(value)
    lines = [line.split() for line in content.splitlines() if line.strip()]
    if match is None:
        asked = value.split()[-1:]
        return any(line[-1:] == asked for line in lines if len(line) == 1 or line[0] == "default")
    asked = value.split()[1:]
    line = next((line[1:] for line in lines if line[0] == match[0]), None)
    if line is None:
        # A limit that was lifted has no line any more.
        return all(word.rpartition("=")[2] in ("0", "max", "default", "auto") for word in asked)
    if not any("=" in word for word in asked):
        return line == asked
    kept = dict(word.split("=", 1) for word in line if "=" in word)
    return all(_same(kept.get(key), wanted) for key, _, wanted in (word.partition("=") for word in asked))


def _same(kept: str | None, asked: str) -> bool:
    if kept is None:
        return False
    try:
        return float(kept) == float(asked)
    except ValueError:
        return kept == asked


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []


def _write(path: Path, value: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, value.encode())
    finally:
        os.close(descriptor)


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
