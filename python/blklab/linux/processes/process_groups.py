"""Members of process groups, identified by start time as well, because the kernel reuses PIDs.

The kernel gives the start time in clock ticks since boot, which never shifts. psutil converts it to
wall-clock time, which shifts when the clock is set.
"""

from __future__ import annotations

from pathlib import Path

_AFTER_NAME_GROUP = 2
_AFTER_NAME_START = 19


def start_ticks(process: int) -> int | None:
    """The start time of a process, in clock ticks since boot; None if it has ended."""
    fields = _fields(Path("/proc") / str(process))
    return int(fields[_AFTER_NAME_START]) if fields else None


def members_of_group(group: int, not_before_ticks: int) -> list[int]:
    """The living processes of a process group that started no earlier than a given time."""
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
    """The fields of ``/proc/PID/stat`` after the name, which may itself contain spaces and parentheses."""
    try:
        return (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []
