"""TLP on laptops: its DISK_IOSCHED sets schedulers at boot and when the power source changes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from blklab.linux.apply.overriding.setting import Overrider, Setting, lines_of, shown

_DEFAULT_DEVICES = "nvme0n1 sda"
_PROGRAMS = ("usr/sbin/tlp", "usr/bin/tlp")
_ASSIGNMENT = re.compile(r"\s*([A-Z_0-9]+)(\+?=)(.*)")


def overriding_tlp(setting: Setting, root: Path) -> Iterator[Overrider]:
    """TLP's setting for the disk, if it is another one."""
    if not any((root / program).exists() for program in _PROGRAMS):
        return
    values, places = _configuration(root)
    schedulers = values.get("DISK_IOSCHED", "").split()
    devices = values.get("DISK_DEVICES", _DEFAULT_DEVICES).split()
    if values.get("TLP_ENABLE", "1") == "0":
        return
    for device, scheduler in zip(devices, schedulers, strict=False):
        if _name_of(device, root) == setting.disk.name and scheduler not in ("keep", setting.choice.name):
            yield Overrider(
                places["DISK_IOSCHED"],
                f"makes TLP set the scheduler of {setting.disk.name} to {scheduler} at boot and when the "
                "power source changes",
                "write keep in its place",
            )


def _name_of(device: str, root: Path) -> str:
    """The kernel's name of a disk that may go by its id."""
    link = root / "dev/disk/by-id" / device
    return link.readlink().name if link.is_symlink() else device


def _configuration(root: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Values of TLP's configuration, and the file and line of each; later files win."""
    values: dict[str, str] = {}
    places: dict[str, str] = {}
    for path in [*sorted((root / "etc/tlp.d").glob("*.conf")), root / "etc/tlp.conf"]:
        for number, line in enumerate(lines_of(path), 1):
            match = _ASSIGNMENT.match(line)
            if match is None:
                continue
            name, operator, text = match.groups()
            try:
                value = " ".join(shlex.split(text, comments=True))
            except ValueError:
                continue
            added = operator == "+=" and name in values
            values[name] = f"{values[name]} {value}" if added else value
            places[name] = f"{shown(path, root)}:{number}"
    return values, places
