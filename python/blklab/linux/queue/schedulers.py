"""A disk's I/O scheduler: which one is active, which ones the kernel offers, and switching."""

from __future__ import annotations

import difflib
import errno

from blklab.errors import BlklabError, SchedulerUnavailableError, UnknownNameError
from blklab.linux.disks.disk import Disk
from blklab.linux.machine.kernel_files import write_once
from blklab.linux.queue.sysfs import (
    SCHEDULER,
    attribute_path,
    queue_folder,
    raise_if_not_about_value,
    read_text,
    vanished,
)

_GONE = {errno.ENODEV, errno.ENOENT, errno.ENXIO, errno.EIO}


def available_schedulers(disk: Disk) -> tuple[str | None, list[str]]:
    """The active scheduler, and all that the kernel lists, in its order.

    Raises:
        DeviceVanishedError: if the disk is gone.
    """
    text = _read_scheduler(disk)
    names = text.split()
    active = next((name[1:-1] for name in names if name.startswith("[")), None)
    return active, [name.strip("[]") for name in names] if active is not None else []


def set_scheduler(disk: Disk, name: str) -> None:
    """Switches to a scheduler unless it is active already.

    Also tries schedulers that are not listed, because the kernel loads their modules on demand.

    Raises:
        SchedulerUnavailableError: if the kernel does not offer it for this disk.
        NotRootError: if we lack the permission.
        DeviceVanishedError: if the disk is gone.
    """
    active, offered = available_schedulers(disk)
    if active == name:
        return
    try:
        write_once(attribute_path(disk, SCHEDULER), name)
    except OSError as error:
        raise_if_not_about_value(disk, SCHEDULER, error)
        raise unavailable_scheduler(disk.name, name, offered) from error
    kept = available_schedulers(disk)[0]
    if kept != name:
        raise SchedulerUnavailableError(
            f"{disk.name}: asked for the scheduler {name}, the kernel kept {kept}"
        )


def unavailable_scheduler(where: str, name: str, offered: list[str]) -> BlklabError:
    """The error for a scheduler that a disk does not offer: this kernel lacks it, or it never existed."""
    if name in _KNOWN_SCHEDULERS:
        return SchedulerUnavailableError(
            f"this kernel does not offer the scheduler {name} for {where}",
            hint=f"it offers {', '.join(offered) or 'none at all'}; {name} is a kernel option "
            f"({_KNOWN_SCHEDULERS[name]})",
        )
    close = difflib.get_close_matches(name, [*offered, *_KNOWN_SCHEDULERS], n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    return UnknownNameError(
        f"there is no scheduler {name!r}", hint=f"{hint}{where} offers {', '.join(offered) or 'none at all'}"
    )


_KNOWN_SCHEDULERS = {
    "mq-deadline": "CONFIG_MQ_IOSCHED_DEADLINE",
    "kyber": "CONFIG_MQ_IOSCHED_KYBER",
    "bfq": "CONFIG_IOSCHED_BFQ",
    "deadline": "CONFIG_IOSCHED_DEADLINE, until Linux 5.0",
    "noop": "CONFIG_IOSCHED_NOOP, until Linux 5.0",
    "cfq": "CONFIG_IOSCHED_CFQ, until Linux 5.0",
    "anticipatory": "CONFIG_IOSCHED_AS, until Linux 2.6.32",
}
"""Schedulers of Linux, past and present, with the option that builds them."""


def _read_scheduler(disk: Disk) -> str:
    try:
        return read_text(attribute_path(disk, SCHEDULER))
    except OSError as error:
        if not queue_folder(disk).is_dir() or error.errno in _GONE - {errno.ENOENT}:
            raise vanished(disk) from error
        return ""  # a bio-based device has no such file
