"""Reading and writing a queue's attributes and its scheduler's tunables.

Every write is read back. The kernel accepts many values silently and keeps another one: `nr_requests` 1
becomes 4, `nomerges` 5 becomes 1, `read_ahead_kb` is rounded down to whole pages.
"""

from __future__ import annotations

import errno
import stat

from blklab.errors import BlklabError, TunableError, did_you_mean, reason_of
from blklab.linux.cgroups.cost_control import THROTTLING
from blklab.linux.disks.disk import Disk
from blklab.linux.machine.kernel_files import write_once
from blklab.linux.queue.schedulers import available_schedulers, set_scheduler
from blklab.linux.queue.sysfs import (
    SCHEDULER,
    TUNABLE_PREFIX,
    attribute_path,
    queue_folder,
    raise_if_not_about_value,
    read_text,
    vanished,
    writable_names,
)
from blklab.spec.queue_attributes import ASYNC_DEPTH

FIRST_WITH_ASYNC_DEPTH_OF_QUEUE = (7, 0)
"""The first release with that attribute."""

_DEFAULT_REQUESTS = {THROTTLING: {"-1"}, "max_sectors_kb": {"0"}}
"""Values that ask for the kernel's default: any value that it then keeps is right."""


def read_attribute(disk: Disk, name: str) -> str:
    """The current value of the scheduler, a queue attribute or a tunable.

    Raises:
        TunableError: if the queue or its active scheduler has no such attribute.
        DeviceVanishedError: if the disk is gone.
    """
    if name == SCHEDULER:
        return available_schedulers(disk)[0] or "none"
    try:
        return read_text(attribute_path(disk, name))
    except OSError as error:
        raise _unreadable(disk, name, error) from error


def name_on(disk: Disk, name: str) -> str:
    """The name that a setting has under the disk's kernel and active scheduler.

    ``async_depth`` and ``iosched/async_depth`` each stand for the other where the kernel has only that one.
    """
    own = f"{TUNABLE_PREFIX}{ASYNC_DEPTH}"
    if name not in (ASYNC_DEPTH, own) or attribute_path(disk, name).exists():
        return name
    other = own if name == ASYNC_DEPTH else ASYNC_DEPTH
    return other if attribute_path(disk, other).exists() else name


def note_on_place(kernel: str, *, of_queue: bool) -> str:
    """The note that a kernel has ``async_depth`` in another place than was asked for.

    Args:
        kernel: Words for the kernel.
        of_queue: Whether it is the queue's attribute there, rather than the scheduler's tunable.
    """
    here = "an attribute of the queue" if of_queue else "a tunable of the scheduler"
    return f"{ASYNC_DEPTH} is {here} in {kernel} (the queue has it from Linux 7.0 on); it is set there"


def tunables(disk: Disk) -> dict[str, str]:
    """The active scheduler's tunables and their values, by name without ``iosched/``."""
    found: dict[str, str] = {}
    for path in sorted((queue_folder(disk) / "iosched").glob("*")):
        try:
            found[path.name] = read_text(path)
        except OSError:  # noqa: PERF203 - write-only
            continue
    return found


def write_attribute(disk: Disk, name: str, value: str) -> None:
    """Sets one attribute and makes sure that the kernel kept the value.

    Raises:
        TunableError: if there is no such attribute, or the kernel refuses the value or keeps another one.
        NotRootError: if we lack the permission.
        DeviceVanishedError: if the disk is gone.
    """
    if name == SCHEDULER:
        set_scheduler(disk, value)
        return
    path = attribute_path(disk, name)
    try:
        before = read_text(path)
        mode = path.stat().st_mode
    except OSError as error:
        raise _unreadable(disk, name, error) from error
    if not mode & stat.S_IWUSR:
        raise TunableError(f"{disk.name}: {name} is read-only (it is {before})")
    try:
        write_once(path, value)
        if not _same_value(read_text(path), value):
            force_throttling(disk, name, value)
    except OSError as error:
        raise_if_not_about_value(disk, name, error)
        reason = reason_of(error)
        raise TunableError(
            f"{disk.name}: the kernel refused {name} = {value} ({reason}); it stays at {before}",
            hint=_hint_about(name),
        ) from error
    kept = read_attribute(disk, name)
    if not _same_value(kept, value) and value not in _DEFAULT_REQUESTS.get(name, ()):
        raise TunableError(
            f"{disk.name}: asked for {name} = {value}, the kernel kept {kept}"
            + (", unchanged" if kept == before else f" (it was {before})"),
            hint=_hint_about(name),
        )


def force_throttling(disk: Disk, name: str, value: str) -> bool:
    """Turns writeback throttling on by hand where bfq or io.cost keep it off.

    Up to Linux 6.12 the kernel ignores a write of the value that it has in memory, although throttling is off
    (``queue_wb_lat_store``, block/blk-sysfs.c); it takes the value after another one.

    Returns:
        Whether it was written; not for other attributes, nor for values that ask for none or the default.

    Raises:
        OSError: if the kernel refuses.
    """
    if name != THROTTLING or not value.strip().isdigit() or int(value) == 0:
        return False
    path = attribute_path(disk, name)
    for text in ("0", value):
        write_once(path, text)
    return True


def _same_value(kept: str, asked: str) -> bool:
    if kept == asked.strip():
        return True
    try:
        return int(kept) == int(asked)
    except ValueError:
        return False


def _hint_about(name: str) -> str | None:
    if name == "nr_requests":
        return "under the scheduler none, nr_requests cannot exceed the device's number of tags"
    return None


def _unreadable(disk: Disk, name: str, error: OSError) -> BlklabError:
    if not queue_folder(disk).is_dir() or error.errno in (errno.ENODEV, errno.ENXIO):
        return vanished(disk)
    if error.errno != errno.ENOENT:
        return TunableError(f"{disk.name}: {name} cannot be read: {reason_of(error)}")
    if name.startswith(TUNABLE_PREFIX):
        known, owner = list(tunables(disk)), f"the scheduler {available_schedulers(disk)[0]}"
        bare = name.removeprefix(TUNABLE_PREFIX)
        kind = "tunable"
    else:
        known, owner = (
            sorted(item for item in writable_names(disk) if "/" not in item),
            f"the queue of {disk.name}",
        )
        bare, kind = name, "attribute"
    close = did_you_mean(bare, known)
    hint = f"{close} " if close else ""
    return TunableError(
        f"{owner} has no {kind} {bare!r}",
        hint=hint + (f"it has {', '.join(known)}" if known else "it has none"),
    )
