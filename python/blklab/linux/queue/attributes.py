"""A disk's queue in sysfs: its scheduler, that scheduler's tunables, and the queue's own attributes.

Every write is read back. The kernel takes many values without a word and keeps another: a `nr_requests` of
1 becomes 4, a `nomerges` of 5 becomes 1, a `read_ahead_kb` is cut to whole pages.

Names: ``scheduler``, ``nr_requests`` (queue/nr_requests), ``iosched/slice_idle`` (queue/iosched/slice_idle).
Texts are the kernel's without the newline at the end.
"""

from __future__ import annotations

import difflib
import errno
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from blklab.errors import (
    BlklabError,
    DeviceVanishedError,
    NotRootError,
    RestoreError,
    SchedulerUnavailableError,
    TunableError,
    UnknownNameError,
    reason_of,
)
from blklab.linux.disks.resolution import Disk
from blklab.linux.machine.kernel_files import write_once

QUEUE_ATTRIBUTES = (
    "add_random",
    "io_poll",
    "iostats",
    "max_sectors_kb",
    "nomerges",
    "nr_requests",
    "rotational",
    "rq_affinity",
    "stable_writes",
    "wbt_lat_usec",
    "write_cache",
    "read_ahead_kb",
)
"""The attributes that a comparison may set, in the order in which they are written.

`read_ahead_kb` comes last: a change of the queue's limits (max_sectors_kb, rotational, stable_writes) makes
the kernel compute it anew."""

TUNABLE_PREFIX = "iosched/"
_SCHEDULER = "scheduler"
_PASSES = 5
_DEFAULT_REQUESTS = {"wbt_lat_usec": {"-1"}, "max_sectors_kb": {"0"}}
"""Requests that mean "your default": any value that is kept answers them."""
_GONE = {errno.ENODEV, errno.ENOENT, errno.ENXIO, errno.EIO}


@dataclass(frozen=True)
class QueueSnapshot:
    """All settings of a queue at one moment."""

    scheduler: str | None
    """The active scheduler; nothing where the device has none."""
    attributes: dict[str, str]
    """Every attribute that can be read and written: the queue's, and the scheduler's under ``iosched/``."""


def available_schedulers(disk: Disk) -> tuple[str | None, list[str]]:
    """The active scheduler and all that the kernel offers now, in the kernel's order.

    Raises:
        DeviceVanishedError: if the disk is gone.
    """
    text = _read_scheduler(disk)
    names = text.split()
    active = next((name[1:-1] for name in names if name.startswith("[")), None)
    return active, [name.strip("[]") for name in names] if active is not None else []


def read_attribute(disk: Disk, name: str) -> str:
    """The value in force.

    Raises:
        TunableError: if the queue or its active scheduler has no such attribute.
        DeviceVanishedError: if the disk is gone.
    """
    if name == _SCHEDULER:
        return available_schedulers(disk)[0] or "none"
    try:
        return _read(_path(disk, name))
    except OSError as error:
        raise _unreadable(disk, name, error) from error


def tunables(disk: Disk) -> dict[str, str]:
    """The active scheduler's tunables and their values, by bare name."""
    found: dict[str, str] = {}
    for path in sorted((_queue(disk) / "iosched").glob("*")):
        try:
            found[path.name] = _read(path)
        except OSError:  # noqa: PERF203 - one that can only be written
            continue
    return found


def snapshot(disk: Disk) -> QueueSnapshot:
    """Everything that can be read and written.

    Raises:
        DeviceVanishedError: if the disk is gone.
    """
    active, _ = available_schedulers(disk)
    attributes: dict[str, str] = {}
    for name in _writable_names(disk):
        try:
            attributes[name] = _read(_path(disk, name))
        except OSError as error:  # noqa: PERF203 - each can fail for itself
            if not _queue(disk).is_dir():
                raise _vanished(disk) from error
            # Some attributes refuse to be read on some drivers (EINVAL): they cannot have been changed by us,
            # since every change of ours is read back.
    return QueueSnapshot(active, attributes)


def set_scheduler(disk: Disk, name: str) -> None:
    """Switches the scheduler, if it is not active already.

    The kernel loads a scheduler's module by itself, so one that is not on the list is tried too.

    Raises:
        SchedulerUnavailableError: if the kernel does not have it for this disk.
        NotRootError: if we may not.
        DeviceVanishedError: if the disk is gone.
    """
    active, offered = available_schedulers(disk)
    if active == name:
        return
    try:
        write_once(_path(disk, _SCHEDULER), name)
    except OSError as error:
        _raise_if_not_ours(disk, _SCHEDULER, error)
        raise unavailable_scheduler(disk.name, name, offered) from error
    kept = available_schedulers(disk)[0]
    if kept != name:
        raise SchedulerUnavailableError(
            f"{disk.name}: asked for the scheduler {name}, the kernel kept {kept}"
        )


def write_attribute(disk: Disk, name: str, value: str) -> None:
    """Sets one attribute and makes sure that the kernel kept it.

    Raises:
        TunableError: if there is no such attribute, the kernel refuses the value, or keeps another one.
        NotRootError: if we may not.
        DeviceVanishedError: if the disk is gone.
    """
    if name == _SCHEDULER:
        set_scheduler(disk, value)
        return
    path = _path(disk, name)
    try:
        before = _read(path)
        mode = path.stat().st_mode
    except OSError as error:
        raise _unreadable(disk, name, error) from error
    if not mode & stat.S_IWUSR:
        raise TunableError(f"{disk.name}: {name} can only be read (it is {before})")
    try:
        write_once(path, value)
    except OSError as error:
        _raise_if_not_ours(disk, name, error)
        reason = reason_of(error)
        raise TunableError(
            f"{disk.name}: the kernel refused {name} = {value} ({reason}); it stays at {before}",
            hint=_hint_about(name),
        ) from error
    kept = read_attribute(disk, name)
    if not _same_value(kept, value) and value not in _DEFAULT_REQUESTS.get(name, ()):
        raise TunableError(
            f"{disk.name}: asked for {name} = {value}, the kernel kept {kept}"
            + (" as it was" if kept == before else f" (it was {before})"),
            hint=_hint_about(name),
        )


def differences(disk: Disk, wanted: QueueSnapshot) -> dict[str, tuple[str, str | None]]:
    """What is not as in a snapshot: name -> (wanted, in force or nothing)."""
    now = snapshot(disk)
    found: dict[str, tuple[str, str | None]] = {}
    if wanted.scheduler is not None and now.scheduler != wanted.scheduler:
        found[_SCHEDULER] = (wanted.scheduler, now.scheduler)
    for name, value in wanted.attributes.items():
        if now.attributes.get(name) != value:
            found[name] = (value, now.attributes.get(name))
    return found


def restore_snapshot(disk: Disk, wanted: QueueSnapshot) -> list[str]:
    """Puts a queue back as it was; may be repeated, writes only what differs.

    The scheduler comes first, since switching it resets nr_requests, wbt_lat_usec and others, and because
    leaving a scheduler loses its tunables. One attribute can change another one (slice_idle is also
    slice_idle_us; nr_requests bounds async_depth), so it goes round until nothing differs.

    Returns:
        What was written, for people.

    Raises:
        RestoreError: if something is still different at the end.
        DeviceVanishedError: if the disk is gone.
    """
    written: list[str] = []
    trouble: dict[str, str] = {}
    for _ in range(_PASSES):
        different = differences(disk, wanted)
        if not different:
            return written
        trouble = {}
        if _SCHEDULER in different:
            try:
                set_scheduler(disk, different[_SCHEDULER][0])
            except (SchedulerUnavailableError, TunableError) as error:
                trouble[_SCHEDULER] = error.message
            else:
                written.append(f"{disk.name}: scheduler = {different[_SCHEDULER][0]}")
            continue
        for name in sorted(different, key=_write_order):
            value = wanted.attributes[name]
            try:
                if read_attribute(disk, name) == value:
                    continue  # an earlier write of this pass has done it
                write_once(_path(disk, name), value)
            except TunableError as error:
                trouble[name] = error.message
            except OSError as error:
                _raise_if_not_ours(disk, name, error)
                trouble[name] = reason_of(error)
            else:
                written.append(f"{disk.name}: {name} = {value}")
    different = differences(disk, wanted)
    if different:
        details = "; ".join(
            f"{name} is {now}, was {value}" + (f" ({trouble[name]})" if name in trouble else "")
            for name, (value, now) in different.items()
        )
        raise RestoreError(
            f"{disk.name}: not all settings could be put back: {details}",
            hint=f"the attributes are files in {_queue(disk)}",
        )
    return written


def _queue(disk: Disk) -> Path:
    return disk.sys_path / "queue"


def _path(disk: Disk, name: str) -> Path:
    if re.fullmatch(r"(?:iosched/)?[a-z0-9_]+", name) is None:
        raise TunableError(f"{name!r} is not the name of a queue attribute")
    return _queue(disk) / name


def _read(path: Path) -> str:
    return path.read_text(encoding="ascii", errors="surrogateescape").removesuffix("\n")


def _read_scheduler(disk: Disk) -> str:
    try:
        return _read(_path(disk, _SCHEDULER))
    except OSError as error:
        if not _queue(disk).is_dir() or error.errno in _GONE - {errno.ENOENT}:
            raise _vanished(disk) from error
        return ""  # a device that takes bios has no such file


def _writable_names(disk: Disk) -> list[str]:
    names = []
    for path in [*_queue(disk).glob("*"), *(_queue(disk) / "iosched").glob("*")]:
        try:
            mode = path.stat().st_mode
        except OSError:
            continue
        if stat.S_ISREG(mode) and mode & stat.S_IRUSR and mode & stat.S_IWUSR and path.name != _SCHEDULER:
            prefix = TUNABLE_PREFIX if path.parent.name == "iosched" else ""
            names.append(prefix + path.name)
    return sorted(names, key=_write_order)


def _write_order(name: str) -> tuple[bool, bool, str]:
    return (name.startswith(TUNABLE_PREFIX), name == "read_ahead_kb", name)


def _same_value(kept: str, asked: str) -> bool:
    if kept == asked.strip():
        return True
    try:
        return int(kept) == int(asked)
    except ValueError:
        return False


def _hint_about(name: str) -> str | None:
    if name == "nr_requests":
        return "with the scheduler none the device's own number of tags is the limit"
    return None


def _raise_if_not_ours(disk: Disk, name: str, error: OSError) -> None:
    """Raises where an error is not about the value: no permission, or no disk."""
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        raise NotRootError(
            f"{disk.name}: {name} may not be written: {reason_of(error)}",
            hint="run it as root, outside of containers that mount /sys read-only",
        ) from error
    if not _queue(disk).is_dir() or error.errno in (errno.ENODEV, errno.ENXIO):
        raise _vanished(disk) from error


def _unreadable(disk: Disk, name: str, error: OSError) -> BlklabError:
    if not _queue(disk).is_dir() or error.errno in (errno.ENODEV, errno.ENXIO):
        return _vanished(disk)
    if error.errno != errno.ENOENT:
        return TunableError(f"{disk.name}: {name} cannot be read: {reason_of(error)}")
    if name.startswith(TUNABLE_PREFIX):
        known, owner = list(tunables(disk)), f"the scheduler {available_schedulers(disk)[0]}"
        bare = name.removeprefix(TUNABLE_PREFIX)
        kind = "tunable"
    else:
        known, owner = (
            [item for item in _writable_names(disk) if "/" not in item],
            f"the queue of {disk.name}",
        )
        bare, kind = name, "attribute"
    close = difflib.get_close_matches(bare, known, n=2)
    hint = f"did you mean {' or '.join(close)}? " if close else ""
    return TunableError(
        f"{owner} has no {kind} {bare!r}",
        hint=hint + (f"it has {', '.join(known)}" if known else "it has none"),
    )


def unavailable_scheduler(where: str, name: str, offered: list[str]) -> BlklabError:
    """The error for a scheduler that a disk does not offer: one that this kernel lacks, or that never was."""
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


def _vanished(disk: Disk) -> DeviceVanishedError:
    return DeviceVanishedError(f"the disk {disk.name} ({disk.model or disk.dev_path}) is gone")
