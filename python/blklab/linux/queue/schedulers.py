"""A disk's I/O scheduler: which one is active, which ones the kernel offers, and switching."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import dataclass

from blklab.errors import BlklabError, SchedulerUnavailableError, UnknownNameError, did_you_mean
from blklab.linux.disks.disk import Disk
from blklab.linux.machine.kernel_config import about_option, kernel_options
from blklab.linux.machine.kernel_files import write_once
from blklab.linux.machine.scheduler_modules import SchedulerModules, find_scheduler_modules
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


@dataclass(frozen=True)
class SchedulerOffer:
    """The schedulers that a disk can have."""

    active: str | None
    """None if the device has no scheduler."""
    listed: list[str]
    """Those that the kernel lists, in its order."""
    modules: SchedulerModules
    """Those that modules would add; none if the device has no scheduler."""

    @property
    def names(self) -> list[str]:
        """All of them: those of modules come last."""
        return [*self.listed, *sorted(self.modules.loadable)]

    @property
    def marked(self) -> list[str]:
        """All of them for people, those that are not loaded as ``bfq (module)``."""
        return [mark_module(name) if name in self.modules.loadable else name for name in self.names]


def mark_module(name: str) -> str:
    """A scheduler whose module is not loaded, for people."""
    return f"{name} (module)"


def offered_schedulers(disk: Disk, modules: SchedulerModules | None = None) -> SchedulerOffer:
    """The schedulers of a disk, with those of modules that are not loaded.

    Args:
        disk: The disk.
        modules: The machine's; None to look for them.

    Raises:
        DeviceVanishedError: if the disk is gone.
    """
    active, listed = available_schedulers(disk)
    if active is None:
        return SchedulerOffer(None, [], SchedulerModules())
    return SchedulerOffer(active, listed, find_scheduler_modules() if modules is None else modules)


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
            f"{disk.name}: asked for the scheduler {name}, the kernel kept {kept}",
            # blk-mq takes names of single-queue days for their successors.
            hint=f"name it {kept}, as this kernel does" if (kept or "").endswith(f"-{name}") else None,
        )


def unavailable_scheduler(where: str, name: str, offered: Sequence[str]) -> BlklabError:
    """The error for a scheduler that a disk does not offer: this kernel lacks it, or it never existed."""
    modules = find_scheduler_modules()
    if name in KNOWN_SCHEDULERS or name in modules.refused or name in modules.loadable:
        return SchedulerUnavailableError(
            f"this kernel does not offer the scheduler {name} for {where}",
            hint=f"it offers {', '.join(offered) or 'none at all'}; {why_unavailable(name, modules)}",
        )
    close = did_you_mean(name, list(dict.fromkeys([*offered, *KNOWN_SCHEDULERS])))
    hint = f"{close} " if close else ""
    return UnknownNameError(
        f"there is no scheduler {name!r}", hint=f"{hint}{where} offers {', '.join(offered) or 'none at all'}"
    )


def why_unavailable(name: str, modules: SchedulerModules) -> str:
    """The reason why this kernel lacks a scheduler, as far as it is known.

    Args:
        name: A scheduler that Linux has or had.
        modules: Those of this machine.
    """
    if name in modules.refused:
        return modules.refused[name]
    if name in modules.loadable:
        return f"{name} is a module that is not loaded"
    option = KNOWN_SCHEDULERS.get(name)
    if option is None:
        return f"{name} is not in this kernel"
    return f"{name}: {about_option(option, kernel_options())}"


KNOWN_SCHEDULERS = {
    "mq-deadline": "CONFIG_MQ_IOSCHED_DEADLINE",
    "kyber": "CONFIG_MQ_IOSCHED_KYBER",
    "bfq": "CONFIG_IOSCHED_BFQ",
    "deadline": "CONFIG_IOSCHED_DEADLINE, until Linux 5.0",
    "noop": "CONFIG_IOSCHED_NOOP, until Linux 5.0",
    "cfq": "CONFIG_IOSCHED_CFQ, until Linux 5.0",
    "anticipatory": "CONFIG_IOSCHED_AS, until Linux 2.6.32",
}
"""Schedulers of Linux, past and present, with the option that builds them."""


def is_foreign(name: str | None) -> bool:
    """Whether a scheduler is none of Linux's own.

    Some of those show what they learn in files that can be written, as ADIOS does with its models of the
    disk: such a file changes under a load, and may refuse its own text.
    """
    return name not in (None, "none", *KNOWN_SCHEDULERS)


def _read_scheduler(disk: Disk) -> str:
    try:
        return read_text(attribute_path(disk, SCHEDULER))
    except OSError as error:
        if not queue_folder(disk).is_dir() or error.errno in _GONE - {errno.ENOENT}:
            raise vanished(disk) from error
        return ""  # a bio-based device has no such file
