"""The drive behind a target: its device number, and its names in udev's hardware database."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass

from blklab.errors import RequirementError
from blklab.linux.apply.identity import properties_of
from blklab.linux.cgroups.hierarchy import find_hierarchy
from blklab.linux.cgroups.settings import missing_attribute
from blklab.linux.disks.disk import STAND_INS
from blklab.linux.disks.stack import all_disks
from blklab.records.samples import TargetDescription
from blklab.spec.profiles import Profile
from blklab.spec.targets import LoopTarget, ModelTarget, Target

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_UNSAFE = re.compile(r"[^A-Za-z0-9#+\-.:=@_]")
"""Characters that udev replaces in the names of most drives."""


@dataclass(frozen=True)
class CostedDrive:
    """The names that the kernel and udev have for a drive."""

    device_number: str | None
    """``8:16``; None for a model or a scratch device, which is gone after the measurement."""
    models: tuple[str, ...]
    """``ID_MODEL`` of udev, or its possible forms; empty if the drive has none."""


def drive_of(target: Target, found: TargetDescription) -> CostedDrive:
    """The drive of a target that was measured."""
    if isinstance(target, LoopTarget | ModelTarget):
        return CostedDrive(None, ())
    name = found.disks[0].name
    disk = next((disk for disk in all_disks() if disk.name == name), None)
    if disk is None:
        return CostedDrive(None, model_forms(found.disks[0].model))
    known = properties_of(disk).get("ID_MODEL")
    return CostedDrive(disk.device_number or None, (known,) if known else model_forms(disk.model))


def model_forms(model: str) -> tuple[str, ...]:
    """The forms in which udev may have a drive's model: as it is, or without special characters."""
    if not model or model in STAND_INS:
        return ()
    return tuple(dict.fromkeys((model, _UNSAFE.sub("_", re.sub(r"\s+", "_", model)))))


@dataclass(frozen=True)
class Calibrated:
    """The parts of a profile's table ``calibration`` that matter here; empty in other profiles."""

    model: str = ""
    machine: str = ""
    """The cost table with which the profile holds."""


def calibrated_facts(profile: Profile) -> Calibrated:
    """The drive and the cost table that a calibrated profile names."""
    table = {} if profile.text is None else tomllib.loads(profile.text).get("calibration", {})
    facts = table if isinstance(table, dict) else {}
    return Calibrated(model=str(facts.get("model", "")), machine=str(facts.get("machine", "")))


def obstacle_here() -> str | None:
    """The reason why this machine's kernel, as it runs, takes no io.cost parameters; None if it does."""
    try:
        hierarchy = find_hierarchy()
    except RequirementError as error:
        return error.message
    if hierarchy.version == 1:
        return "this machine controls I/O through cgroup v1, which has no io.cost: it takes cgroup v2"
    if not (hierarchy.root / "io.cost.model").exists():
        missing = missing_attribute(hierarchy.version, "io.cost.model")
        return f"{missing.message}: {missing.hint}"
    return None
