"""Partitions that only the kernel knows: parts of a device with nodes of their own.

A job with several files takes them for its files. I/O to them goes through the scheduler of the device, and
nothing is written to divide it. They are gone with the device, at a reboot, or when the journal removes them.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blklab.errors import NotRootError, RequirementError, reason_of
from blklab.linux.machine.kernel_files import text_or_empty

if TYPE_CHECKING:
    from blklab.linux.journal.journal import Journal

_BLKPG = 0x1269
_ADD = 1
_DELETE = 2
"""ioctl request and operations of linux/blkpg.h."""
_SECTOR_BYTES = 512
_BLOCK = Path("/sys/class/block")
_ATTEMPTS = 500
_PAUSE_SECONDS = 0.02


class _Partition(ctypes.Structure):
    """struct blkpg_partition."""

    _fields_ = (
        ("start", ctypes.c_longlong),
        ("length", ctypes.c_longlong),
        ("number", ctypes.c_int),
        ("names", ctypes.c_char * 128),
    )


class _Request(ctypes.Structure):
    """struct blkpg_ioctl_arg."""

    _fields_ = (
        ("operation", ctypes.c_int),
        ("flags", ctypes.c_int),
        ("length", ctypes.c_int),
        ("data", ctypes.c_void_p),
    )


@dataclass(frozen=True)
class Partition:
    """A part of a device."""

    device: str
    """The node of the whole device."""
    number: int
    start_bytes: int
    length_bytes: int

    @property
    def path(self) -> str:
        """Its node, as the kernel calls it."""
        return partition_path(self.device, self.number)

    @property
    def end_bytes(self) -> int:
        """The first byte behind it."""
        return self.start_bytes + self.length_bytes

    @property
    def is_there(self) -> bool:
        """Whether the kernel has a partition of this name in this place."""
        folder = _BLOCK / Path(self.path).name
        place = [text_or_empty(folder / name).strip() for name in ("start", "size")]
        return place == [str(self.start_bytes // _SECTOR_BYTES), str(self.length_bytes // _SECTOR_BYTES)]

    def as_entry(self) -> dict[str, str | int]:
        """The same for a journal's entry."""
        return {"path": self.path, **asdict(self)}

    @staticmethod
    def from_entry(entry: Mapping[str, Any]) -> Partition:
        """The partition of a journal's entry."""
        places = {name: int(entry[name]) for name in ("number", "start_bytes", "length_bytes")}
        return Partition(device=str(entry["device"]), **places)


def partition_path(device: str, number: int) -> str:
    """The node of a device's partition."""
    return f"{device}p{number}" if device[-1].isdigit() else f"{device}{number}"


def add(journal: Journal, partition: Partition) -> None:
    """Adds a partition until the journal ends; one that is there already stays as it is.

    Raises:
        NotRootError: if we lack the permission.
        RequirementError: if the device takes no partitions, or another one is in that place.
    """
    if partition.is_there:
        return
    entry = journal.own_partition(partition)
    try:
        _request(_ADD, partition)
    except OSError as error:
        journal.release(entry)
        if error.errno in (errno.EACCES, errno.EPERM):
            raise NotRootError(
                f"no permission to divide {partition.device}: {reason_of(error)}", hint="run as root"
            ) from error
        raise RequirementError(
            f"{partition.device} cannot be divided for a job with several files: {reason_of(error)}",
            hint="a device with partitions of its own takes no others; name a directory, or loop:4g",
        ) from error
    _wait_for_node(partition)


def remove(partition: Partition) -> bool:
    """Removes a partition if it is still in its place.

    Returns:
        Whether it was removed.

    Raises:
        RequirementError: if a process still has it open.
    """
    for _ in range(_ATTEMPTS):
        if not partition.is_there:
            return False
        try:
            _request(_DELETE, partition)
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
        else:
            return True
        time.sleep(_PAUSE_SECONDS)  # udev or another reader is about to close it
    raise RequirementError(
        f"{partition.path} is still in use and stays",
        hint=f"see `fuser -v {partition.path}`; then `delpart {partition.device} {partition.number}`",
    )


def _request(operation: int, partition: Partition) -> None:
    place = _Partition(partition.start_bytes, partition.length_bytes, partition.number)
    request = _Request(operation, 0, ctypes.sizeof(place), ctypes.addressof(place))
    descriptor = os.open(partition.device, os.O_RDONLY | os.O_CLOEXEC)
    try:
        # The kernel follows the address in the request.
        fcntl.ioctl(descriptor, _BLKPG, bytes(request))
    finally:
        os.close(descriptor)


def _wait_for_node(partition: Partition) -> None:
    node = Path(partition.path)
    for _ in range(_ATTEMPTS):
        if node.exists():
            return
        time.sleep(_PAUSE_SECONDS)
    raise RequirementError(f"{node} does not appear", hint="in a container: give it the host's /dev")
