"""File systems and devices that are not there yet, as early in a boot: undoing has to wait for them.

Without its file system a mount point is an empty directory: scratch files look removed, and a state directory
looks as if no run had ever been killed.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from blklab.errors import RequirementError
from blklab.linux.directories.mounts import mount_of, read_mounts, unescape
from blklab.linux.journal.file import Entry

_PROC = Path("/proc")
FSTAB = Path("/etc/fstab")


def place_of(entry: Entry) -> dict[str, Any]:
    """The file system that an entry's file is made on, as a part of the entry; empty for other entries."""
    if "parent_inode" not in entry:
        return {}
    parent = Path(entry["path"]).parent
    mount = mount_of(parent, _PROC)
    if mount is None:
        return {}
    return {
        "on": {
            "mount_point": mount.mount_point,
            "filesystem": mount.filesystem,
            "source": mount.source,
            "device": parent.stat().st_dev,
        }
    }


def split_off_awaited(entries: list[Entry], *, same_boot: bool) -> tuple[list[Entry], list[str]]:
    """Splits off the entries that cannot be undone before something is mounted or plugged in.

    Args:
        entries: The journal's lines without its header.
        same_boot: Whether the machine has not been rebooted since.

    Returns:
        The other entries, and what has to be waited for, each once, in words for people.
    """
    mounted = {mount.mount_point for mount in read_mounts(_PROC)}
    released = {entry["of"] for entry in entries if entry["kind"] == "released"}
    ready: list[Entry] = []
    awaited: dict[str, None] = {}
    for entry in entries:
        missing = _missing(entry, mounted, same_boot=same_boot)
        if missing is None or entry["number"] in released:
            ready.append(entry)
        else:
            awaited[missing] = None
    return ready, list(awaited)


def _missing(entry: Entry, mounted: set[str], *, same_boot: bool) -> str | None:
    if entry["kind"] == "filesystem":
        # A device that is gone within a boot was unplugged; after a boot it may only be late.
        return None if same_boot or Path(entry["path"]).exists() else f"the device {entry['path']}"
    on = entry.get("on")
    if on is None or on["mount_point"] in mounted or _is_there(Path(entry["path"]).parent, entry):
        return None
    return f"the file system of {on['mount_point']} ({on['filesystem']} on {on['source']}) to be mounted"


def _is_there(parent: Path, entry: Entry) -> bool:
    """Whether the directory is there without its mount, which was a second one of the same file system."""
    try:
        status = parent.stat()
    except OSError:
        return False
    return (status.st_dev, status.st_ino) == (entry["on"]["device"], entry["parent_inode"])


def require_mounted(path: Path) -> None:
    """Refuses a path on a file system that this machine mounts at boot and has not mounted.

    Args:
        path: A directory; it need not exist.

    Raises:
        RequirementError: if /etc/fstab has a mount point at or above it on which nothing is mounted.
    """
    real = path.resolve()
    mounted = {mount.mount_point for mount in read_mounts(_PROC)}
    for source, mount_point in _mounted_at_boot():
        if real.is_relative_to(mount_point) and os.path.realpath(mount_point) not in mounted:
            raise RequirementError(
                f"{path} lies on {mount_point} ({source} in {FSTAB}), which is not mounted",
                hint=f"mount {mount_point}, then try again: journals of killed runs may be there",
            )


def _mounted_at_boot() -> list[tuple[str, str]]:
    """Sources and mount points of /etc/fstab, without those that are mounted on demand (fstab(5))."""
    try:
        lines = FSTAB.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        fields = line.split()
        if len(fields) < 4 or fields[0].startswith("#") or not fields[1].startswith("/"):
            continue
        if "noauto" not in fields[3].split(","):
            found.append((unescape(fields[0]), unescape(fields[1])))
    return found
