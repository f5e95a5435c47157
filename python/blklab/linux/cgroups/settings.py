"""Settings for control groups, and checks of what the kernel made of them. Pure, except for `undo_writes`.

Per-device attributes (``io.max``, ``blkio.throttle.*_device`` …) are written once for each leaf disk.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from blklab.errors import JobFileError, TunableError, UsageError
from blklab.linux.disks.disk import Disk
from blklab.linux.machine.kernel_config import about_option, kernel_options
from blklab.linux.machine.scheduler_modules import GROUP_WEIGHTS, find_scheduler_modules
from blklab.spec.group_settings import KEYED, OF_DISK, ROOT_GROUP, cost_is_enabled
from blklab.spec.workloads import Workload

_GROUP_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_ATTRIBUTE = re.compile(r"(?:blkio|io)\.[a-z0-9_.-]+")
_OWN_WEIGHT = re.compile(r"(?:blkio|io)\.([a-z0-9_-]+)\.weight")
"""Of bfq, or of a variant that is a module."""
_DEVICE_NUMBER = re.compile(r"\d+:\d+")
WEIGHTS = {1: ("blkio.bfq.weight", "blkio.weight"), 2: ("io.bfq.weight", "io.weight")}
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
class CgroupSetting:
    """One write to one attribute of one group."""

    group: str
    """Its name in the specification; `ROOT_GROUP` for the root."""
    attribute: str
    value: str
    """The value as written, with the device number for a per-device attribute."""
    optional: bool = False
    """Whether to skip it if the kernel lacks the attribute: a weight has several possible attributes."""


def wanted_settings(
    version: int,
    groups: Mapping[str, Mapping[str, str]],
    workloads: Iterable[Workload],
    leaves: Sequence[Disk],
) -> list[CgroupSetting]:
    """All writes for a run under a cgroup version, in order.

    Raises:
        UsageError: for an invalid group or attribute.
        JobFileError: if jobs give one group different weights.
    """
    numbers = device_numbers(leaves)
    settings = []
    for group, attributes in groups.items():
        if group != ROOT_GROUP:
            _check_group_name(group)
        for attribute, value in attributes.items():
            _check_attribute(version, group, attribute)
            values = [value]
            if _per_device(attribute) and not _DEVICE_NUMBER.match(value):
                values = [f"{number} {value}" for number in numbers]
            settings += [CgroupSetting(group, attribute, each) for each in values]
    for group, weight in _job_weights(workloads).items():
        settings += [
            CgroupSetting(group, attribute, str(weight), optional=True) for attribute in WEIGHTS[version]
        ]
    return settings


def group_names(groups: Iterable[str], workloads: Iterable[Workload]) -> list[str]:
    """The groups to create, each once.

    Raises:
        UsageError: for an invalid name.
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


def honors_weights(scheduler: str, groups: Mapping[str, Mapping[str, str]]) -> bool:
    """Tells whether group weights have an effect: with bfq and cfq, or with io.cost under any scheduler."""
    return scheduler in ("bfq", "cfq") or cost_is_enabled(groups)


_NUMBER_LATER = "$(cat /sys/class/block/"


def shell_text(value: str) -> str:
    """A setting's value as a shell takes it, also with the number of a device that is not there yet."""
    return f'"{value}"' if value.startswith(_NUMBER_LATER) else shlex.quote(value)


def device_numbers(leaves: Sequence[Disk]) -> list[str]:
    """``MAJOR:MINOR`` of each leaf; for a hidden path, of its multipath head.

    Of a device that a dry run does not make, a shell expression that gives it once the device is there.
    """
    numbers = []
    for leaf in leaves:
        number = leaf.device_number
        if not number:
            try:
                device = leaf.dev_path.stat().st_rdev
                number = f"{os.major(device)}:{os.minor(device)}"
            except FileNotFoundError:
                number = f"{_NUMBER_LATER}{leaf.name}/dev)"
        numbers.append(number)
    return list(dict.fromkeys(numbers))


def missing_attribute(version: int, attribute: str) -> TunableError:
    """The error for a missing attribute, with its counterpart in this cgroup version."""
    message = f"this kernel has no {attribute} under cgroup v{version}"
    other_version = (attribute.startswith("io.")) == (version == 1)
    counterpart = _COUNTERPARTS[version].get(attribute)
    option = _KERNEL_OPTIONS.get(attribute)
    if other_version and counterpart is None and attribute.startswith("blkio.throttle."):
        counterpart = "io.max"
    hints = []
    own = _OWN_WEIGHT.fullmatch(attribute)
    if own is not None and attribute not in GROUP_WEIGHTS:
        controller = "io" if version == 2 else "blkio"
        hints.append(
            f"it comes with the module {own[1]}, if that is a variant of bfq and among the schedulers; "
            f"{controller}.bfq.weight is meant for all of them"
        )
    if counterpart is not None:
        hints.append(f"here it is {counterpart}")
    elif other_version:
        hints.append(f"it belongs to cgroup v{3 - version}")
    if option is not None and not other_version:
        hints.append(_about_missing(attribute, option))
    return TunableError(message, hint="; ".join(hints) or None)


def _about_missing(attribute: str, option: str) -> str:
    scheduler = GROUP_WEIGHTS.get(attribute)
    modules = find_scheduler_modules()
    if scheduler in modules.refused:
        return f"it appears with the module of {scheduler}: {modules.refused[scheduler]}"
    if scheduler in modules.loadable:
        return f"it appears once the module of {scheduler} is loaded (modprobe {modules.loadable[scheduler]})"
    return f"{attribute}: {about_option(option, kernel_options())}"


def undo_writes(path: Path, value: str) -> list[str]:
    """The strings to write to an attribute of the root group to restore its current content."""
    match = _DEVICE_NUMBER.match(value)
    if match is None:
        return [path.read_text().strip()]
    number = match[0]
    before = next((line for line in path.read_text().splitlines() if line.startswith(f"{number} ")), None)
    if path.name in OF_DISK:
        # Setting any parameter implies ctrl=user, so a line with ctrl=auto cannot be written back unchanged.
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


def _per_device(attribute: str) -> bool:
    return attribute in KEYED or attribute.endswith("_device")


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
                    f"the control group {job.cgroup!r} already has the weight {weights[job.cgroup]}",
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
            f"{name!r} is not a valid name for a control group", hint="use letters, digits, '_', '-' and '.'"
        )


def _check_attribute(version: int, group: str, attribute: str) -> None:
    if _ATTRIBUTE.fullmatch(attribute) is None:
        raise UsageError(
            f"control group {group!r}: {attribute!r} is not an attribute of the I/O controller",
            hint="its attributes begin with io. (cgroup v2) or blkio. (v1)",
        )
    if version == 2 and attribute in OF_DISK and group != ROOT_GROUP:
        raise UsageError(
            f"control group {group!r}: {attribute} belongs to the root group",
            hint='put it under [cgroups."/"]',
        )


def value_hint(attribute: str) -> str | None:
    """A hint about a value that the kernel refused; None if there is none to give."""
    if _OWN_WEIGHT.fullmatch(attribute) is not None:
        return "bfq's weights range from 1 to 1000"
    if attribute == "io.weight":
        return "io.weight ranges from 1 to 10000"
    return None


def is_in_force(content: str, value: str) -> bool:
    """Tells whether an attribute's content agrees with the value that was written."""
    match = _DEVICE_NUMBER.match(value)
    lines = [line.split() for line in content.splitlines() if line.strip()]
    if match is None:
        asked = value.split()[-1:]
        return any(line[-1:] == asked for line in lines if len(line) == 1 or line[0] == "default")
    asked = value.split()[1:]
    line = next((line[1:] for line in lines if line[0] == match[0]), None)
    if line is None:
        # A device without limits has no line.
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
