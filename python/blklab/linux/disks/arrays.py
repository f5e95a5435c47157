"""Arrays that lack a member or rebuild one: md, btrfs and the RAID of LVM.

A degraded array serves reads from fewer disks and computes what the missing one held; one that is rebuilt
moves data beside the load. Neither shows how the array does when it is whole.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from blklab.linux.disks.disk import Roots
from blklab.linux.machine.kernel_files import text_or_empty
from blklab.linux.machine.stacked_devices import devices_above
from blklab.linux.processes.programs import find_program
from blklab.quantities.formatting import count_of

_QUIET = {"", "idle", "frozen", "none"}
"""Values of ``md/sync_action`` under which nothing moves (Documentation/admin-guide/md.rst)."""
_DMSETUP_TIMEOUT_S = 10


def array_troubles(disks: Iterable[Path], roots: Roots | None = None) -> list[str]:
    """Sentences on the arrays on some disks that are degraded or rebuild; empty if all are whole.

    Args:
        disks: The disks' directories in sysfs, symbolic links resolved.
        roots: Where the kernel's file systems are.
    """
    roots = roots or Roots()
    devices: dict[Path, None] = {}
    for disk in disks:
        devices |= dict.fromkeys([disk, *devices_above(disk)])
    found = [trouble for device in devices for trouble in (*_of_md(device), *_of_dm(device, roots))]
    return list(dict.fromkeys([*found, *_of_btrfs([device.name for device in devices], roots)]))


def _of_md(device: Path) -> list[str]:
    folder = device / "md"
    name = f"{device.name} ({text_or_empty(folder / 'level')})"
    found = []
    missing, members = text_or_empty(folder / "degraded"), text_or_empty(folder / "raid_disks")
    if missing.isdigit() and int(missing):
        found.append(f"{name} is degraded: it lacks {missing} of {members or 'its'} members")
    action = text_or_empty(folder / "sync_action")
    if action not in _QUIET:
        found.append(f"{name} is busy with itself: {action}")
    return found


def _of_dm(device: Path, roots: Roots) -> list[str]:
    """LVM's RAID, whose state only an ioctl tells; empty without dmsetup or without root."""
    dm_name = text_or_empty(device / "dm" / "name")
    if not dm_name or roots.sys != Path("/sys"):
        return []
    program = find_program("dmsetup")
    if program is None:
        return []
    try:
        answer = subprocess.run(
            [program, "status", "--target", "raid", dm_name],
            capture_output=True,
            text=True,
            timeout=_DMSETUP_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return raid_troubles(dm_name, answer.stdout) if answer.returncode == 0 else []


def raid_troubles(name: str, status: str) -> list[str]:
    """Reads a status line of the target ``raid`` (Documentation/admin-guide/device-mapper/dm-raid.rst).

    ``START LENGTH raid TYPE MEMBERS HEALTH SYNCED/ALL ACTION MISMATCHES …``; each letter of the health is a
    member: ``A`` in sync, ``a`` not in sync, ``D`` dead, ``-`` absent.
    """
    words = status.split()
    if len(words) < 8 or words[2] != "raid" or re.fullmatch(r"[AaD-]+", words[5]) is None:
        return []
    lost = sum(1 for letter in words[5] if letter in "D-")
    found = []
    if lost:
        found.append(f"{name} ({words[3]}) is degraded: it lacks {lost} of {len(words[5])} members")
    if words[7] not in _QUIET:
        found.append(f"{name} ({words[3]}) is busy with itself: {words[7]}")
    return found


def _of_btrfs(names: Sequence[str], roots: Roots) -> list[str]:
    """Mounted btrfs file systems that have one of the devices (fs/btrfs/sysfs.c: ``devinfo``)."""
    found = []
    for folder in sorted((roots.sys / "fs" / "btrfs").glob("*-*")):
        if not any((folder / "devices" / name).exists() for name in names):
            continue
        members = list((folder / "devinfo").glob("[0-9]*"))
        missing = sum(1 for member in members if text_or_empty(member / "missing") == "1")
        if missing:
            of_all = count_of(len(members), "member")
            found.append(f"the btrfs {_label(folder)} is degraded: it lacks {missing} of {of_all}")
        running = text_or_empty(folder / "exclusive_operation")
        if running not in _QUIET:
            found.append(f"the btrfs {_label(folder)} is busy with itself: {running}")
    return found


def _label(folder: Path) -> str:
    """The label of a btrfs, or else its UUID."""
    return text_or_empty(folder / "label") or folder.name
