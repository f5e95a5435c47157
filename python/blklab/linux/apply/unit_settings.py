"""Weights and limits of control groups as properties of systemd's units, which are the groups' owners.

blklab applies what belongs to a disk. What a choice gives a group of processes, only the person can place:
they know which unit does that work. systemd.resource-control(5) has the properties.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from blklab.errors import UsageError
from blklab.spec.group_settings import GroupSetting, group_settings
from blklab.spec.schedulers import SchedulerChoice

_UNIT = re.compile(r"[A-Za-z0-9:_.\\@-]+\.(service|slice|scope|socket|mount|swap)")
"""The kinds of units that have a control group."""
_LIMITS = {
    "rbps": "IOReadBandwidthMax",
    "wbps": "IOWriteBandwidthMax",
    "riops": "IOReadIOPSMax",
    "wiops": "IOWriteIOPSMax",
}
_DEFAULT_WEIGHT = 100
_BFQ_STEPS = 11
"""Steps of ``IOWeight`` above its default that raise bfq's weight by one: systemd maps 100 to 10,000 onto 100
to 1000 (`BFQ_WEIGHT`, src/basic/cgroup-util.h, systemd 256)."""


@dataclass(frozen=True)
class UnitCommand:
    """The settings of one group, left to the person."""

    group: str
    unit: str | None
    """None if the group stands for a unit that nobody has named."""
    command: str | None
    """``systemctl set-property …``; None if systemd has no property for any of them."""
    without_property: tuple[str, ...]
    """Settings that systemd has no property for, as ``ATTRIBUTE = VALUE``."""

    @property
    def text(self) -> str:
        """The command with its circumstances, for people."""
        parts = []
        if self.command is not None:
            place = "" if self.unit else f", UNIT being the unit that the group {self.group!r} stands for"
            parts.append(f"left to you{place}: {self.command}")
        if self.without_property:
            parts.append(
                f"systemd has no property for {', '.join(self.without_property)} of the group "
                f"{self.group!r}: write it into its control group"
            )
        return "; ".join(parts)


def parse_units(texts: tuple[str, ...]) -> dict[str, str]:
    """Reads ``GROUP=UNIT``.

    Raises:
        UsageError: for a text of another form, or a name that no unit with a control group has.
    """
    found = {}
    for text in texts:
        group, equals, unit = text.partition("=")
        if not (equals and group) or _UNIT.fullmatch(unit) is None:
            raise UsageError(f"--unit {text} is not GROUP=UNIT", hint="such as --unit batch=backup.service")
        found[group] = unit
    return found


def unit_commands(choice: SchedulerChoice, device: str, units: Mapping[str, str]) -> list[UnitCommand]:
    """The commands for what a choice gives groups, one for each group.

    Args:
        choice: The choice.
        device: Path of the disk, for limits.
        units: By group: its unit. A group that has the name of a unit needs none.

    Raises:
        UsageError: if a unit is named for a group that the choice does not set, or bfq's weight is no number.
    """
    by_group: dict[str, list[GroupSetting]] = {}
    for place in group_settings(choice.of_groups):
        if not place.is_of_disk:
            by_group.setdefault(place.group, []).append(place)
    for group in units:
        if group not in by_group:
            known = ", ".join(by_group) or "none"
            raise UsageError(
                f"--unit: the choice sets nothing of the group {group!r}", hint=f"it sets {known}"
            )
    return [_command(choice, group, places, device, units.get(group)) for group, places in by_group.items()]


def _command(
    choice: SchedulerChoice, group: str, places: list[GroupSetting], device: str, named: str | None
) -> UnitCommand:
    unit = named or (group if _UNIT.fullmatch(group) else None)
    properties: dict[str, str] = {}
    without = []
    for place in places:
        value = choice.tunables[place.name]
        found = _property(place, value, device)
        if found is None or properties.setdefault(*found) != found[1]:
            without.append(f"{place.without_group} = {value}")
    words = [f"{name}={value}" for name, value in properties.items()]
    command = shlex.join(["systemctl", "set-property", unit or "UNIT", *words]) if words else None
    return UnitCommand(group, unit, command, tuple(without))


def _property(place: GroupSetting, value: str, device: str) -> tuple[str, str] | None:
    """Name and value of the property; None if there is none."""
    match place.attribute, place.key:
        case "io.weight", None:
            return "IOWeight", value
        case "io.bfq.weight", None:
            if not value.isdecimal():
                raise UsageError(f"{place.name}: {value!r} is no weight", hint="bfq's weights are 1 to 1000")
            weight = int(value)
            above = max(0, weight - _DEFAULT_WEIGHT)
            return "IOWeight", str(min(weight, _DEFAULT_WEIGHT) + _BFQ_STEPS * above)
        case (("blkio.bfq.weight" | "blkio.weight"), None):
            return "BlockIOWeight", value
        case "io.max", key if key in _LIMITS:
            return _LIMITS[key], f"{device} {'infinity' if value == 'max' else value}"
        case "io.latency", "target":
            return "IODeviceLatencyTargetSec", f"{device} {value}us"
    return None
