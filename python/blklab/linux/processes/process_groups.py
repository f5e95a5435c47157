"""Processes by group, recognised by when they started, since numbers are used again.

The kernel counts that moment in clock ticks since boot, which nothing shifts. psutil gives it as a time of
day, computed from that of the boot, which moves when the clock is set.
"""

from __future__ import annotations

from pathlib import Path

_AFTER_NAME_GROUP = 2
_AFTER_NAME_START = 19


def start_ticks(process: int) -> int | None:
    """When a process started, in clock ticks since boot; nothing if it has ended."""
    fields = _fields(Path("/proc") / str(process))
    return int(fields[_AFTER_NAME_START]) if fields else None


def members_of_group(group: int, not_before_ticks: int) -> list[int]:
    """Living processes of a process group that started at or after a time."""
    members = []
    for folder in Path("/proc").glob("[0-9]*"):
        fields = _fields(folder)
        if (
            fields
            and fields[0] not in "ZX"
            and int(fields[_AFTER_NAME_GROUP]) == group
            and int(fields[_AFTER_NAME_START]) >= not_before_ticks
        ):
            members.append(int(folder.name))
    return sorted(members)


def _fields(folder: Path) -> list[str]:
    """Fields of ``/proc/PID/stat`` after the name, which may itself hold blanks and brackets."""
    try:
        return (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []
