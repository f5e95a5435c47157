"""The member devices of a btrfs file system."""

from __future__ import annotations

import os
import sys
import uuid
from pathlib import Path

_FS_INFO = 0x8400941F
"""BTRFS_IOC_FS_INFO of linux/btrfs.h: fills a 1024-byte structure with the file system's UUID at byte 16."""
_FS_INFO_BYTES = 1024


def member_names(path: Path, source_name: str | None, sysfs: Path) -> list[str]:
    """Kernel names of the member devices of the btrfs that a path is on.

    Args:
        path: Any path on the file system.
        source_name: The device in the mount table, for file systems that do not answer the ioctl.
        sysfs: Mount point of sysfs.

    Returns:
        Names as in ``/sys/class/block``, sorted, without missing members.
    """
    known = sysfs / "fs" / "btrfs"
    identifier = _file_system_uuid(path)
    folders = [known / identifier] if identifier and (known / identifier).is_dir() else []
    if not folders and source_name:
        folders = [entry.parent.parent for entry in known.glob(f"*/devices/{source_name}")]
    return sorted(entry.name for folder in folders for entry in (folder / "devices").glob("*"))


def _file_system_uuid(path: Path) -> str | None:
    if sys.platform != "linux":
        return None
    import fcntl  # noqa: PLC0415 - Windows has none

    answer = bytearray(_FS_INFO_BYTES)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        fcntl.ioctl(descriptor, _FS_INFO, answer)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return str(uuid.UUID(bytes=bytes(answer[16:32])))
