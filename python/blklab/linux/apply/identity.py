"""Identifies a disk across reboots, when names such as sda may change."""

from __future__ import annotations

import functools
import subprocess
from dataclasses import dataclass

from blklab.errors import RequirementError
from blklab.linux.disks.disk import Disk
from blklab.linux.disks.stack import all_disks


@dataclass(frozen=True)
class Identity:
    """The udev matches that identify a disk."""

    matches: tuple[tuple[str, str], ...]
    """Pairs of a udev match key and the unescaped value."""
    description: str
    """For people: ``serial S4EWNX0R123456``."""
    warning: str | None = None
    """A reason why it may fail to match, or match another disk."""

    @property
    def slug(self) -> str:
        """A part of a file name; the same identity always gives the same one."""
        text = "-".join(value for _, value in self.matches)
        return "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in text)[:120]


def identify(disk: Disk, others: list[Disk] | None = None) -> Identity:
    """The best identity that a disk shares with no other disk of this machine.

    It prefers the world-wide name, then the serial number, then the physical path, then the kernel's name.

    Args:
        disk: The disk.
        others: The disks that it must be told apart from; by default all disks of the machine.

    Raises:
        RequirementError: if udev gets no events for such a device.
    """
    if not disk.device_number:
        raise RequirementError(
            f"{disk.name} is a hidden path of an NVMe multipath device, for which udev has no events",
            hint="set it with --now-only, and again after each boot (from a systemd service, say)",
        )
    others = [other for other in (all_disks() if others is None else others) if other.key != disk.key]
    if (disk.sys_path / "loop").is_dir():
        backing = (disk.sys_path / "loop" / "backing_file").read_text().rstrip("\n")
        return Identity((("ATTR{loop/backing_file}", backing),), f"loop device over {backing}")
    candidates = [*_own_names(disk), *_place(disk)]
    for candidate in candidates:
        if not any(_shares(other, candidate) for other in others):
            return candidate
    return Identity(
        (("KERNEL", disk.name),),
        f"the name {disk.name}",
        f"{disk.name} has neither a serial number nor a known physical path, so the rule matches its name, "
        "which may belong to another disk after a reboot",
    )


def _own_names(disk: Disk) -> list[Identity]:
    """Identities that the disk reports in sysfs, which udev can match without help from other rules."""
    found = []
    if (disk.sys_path / "dm").is_dir() and disk.wwid:
        found.append(Identity((("ATTR{dm/uuid}", disk.wwid),), f"device-mapper {disk.wwid}"))
    elif disk.wwid:
        key = "ATTR{wwid}" if (disk.sys_path / "wwid").exists() else "ATTRS{wwid}"
        found.append(Identity(((key, disk.wwid),), f"world-wide name {disk.wwid}"))
    if disk.serial:
        for file, key in (("serial", "ATTR{serial}"), ("device/serial", "ATTRS{serial}")):
            if (disk.sys_path / file).exists():
                found.append(Identity(((key, disk.serial),), f"serial number {disk.serial}"))
                break
        else:  # comes from a SCSI page; udev's own rules set a property for it
            short = properties_of(disk).get("ID_SERIAL_SHORT") or properties_of(disk).get("ID_SERIAL")
            if short:
                key = "ENV{ID_SERIAL_SHORT}" if "ID_SERIAL_SHORT" in properties_of(disk) else "ENV{ID_SERIAL}"
                found.append(Identity(((key, short),), f"serial number {short}"))
    return found


def _place(disk: Disk) -> list[Identity]:
    path = properties_of(disk).get("ID_PATH")
    if not path:
        return []
    warning = (
        f"{disk.name} is identified by its physical path ({path}), because its own identifiers are not unique"
    )
    return [Identity((("ENV{ID_PATH}", path),), f"the path {path}", warning)]


def _shares(other: Disk, identity: Identity) -> bool:
    key, value = identity.matches[0]
    if "wwid" in key or "uuid" in key:
        return other.wwid == value
    if "serial" in key.lower():
        return value in (other.serial, properties_of(other).get("ID_SERIAL_SHORT"))
    return properties_of(other).get("ID_PATH") == value


def properties_of(disk: Disk) -> dict[str, str]:
    """The properties of a device in udev; without the daemon, those of udev's built-in path_id."""
    return _properties_at(str(disk.sys_path), disk.diskseq)


@functools.lru_cache(maxsize=256)
def _properties_at(sys_path: str, diskseq: str) -> dict[str, str]:
    del diskseq  # part of the cache's key: tells a disk from its replacement
    known = _udevadm("info", "--query=property", f"--path={sys_path}")
    if "ID_PATH" not in known:
        known = _udevadm("test-builtin", "path_id", sys_path) | known
    return known


def _udevadm(*arguments: str) -> dict[str, str]:
    try:
        answer = subprocess.run(["udevadm", *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return {}
    pairs = (line.partition("=") for line in answer.stdout.splitlines())
    return {key: value for key, separator, value in pairs if separator}
