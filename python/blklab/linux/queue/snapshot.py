"""Snapshots of all settings of a queue, and restoring them."""

from __future__ import annotations

from dataclasses import dataclass

from blklab.errors import RestoreError, SchedulerUnavailableError, TunableError, reason_of
from blklab.linux.disks.disk import Disk
from blklab.linux.machine.kernel_files import write_once
from blklab.linux.queue.attributes import read_attribute
from blklab.linux.queue.schedulers import available_schedulers, set_scheduler
from blklab.linux.queue.sysfs import (
    SCHEDULER,
    attribute_path,
    queue_folder,
    raise_if_not_about_value,
    read_text,
    vanished,
    writable_names,
    write_order,
)

_PASSES = 5


@dataclass(frozen=True)
class QueueSnapshot:
    """All settings of a queue at one moment."""

    scheduler: str | None
    """The active scheduler; None if the device has none."""
    attributes: dict[str, str]
    """Every attribute that is readable and writable: the queue's, and the scheduler's under ``iosched/``."""


def snapshot(disk: Disk) -> QueueSnapshot:
    """Reads every setting that is readable and writable.

    Raises:
        DeviceVanishedError: if the disk is gone.
    """
    active, _ = available_schedulers(disk)
    attributes: dict[str, str] = {}
    for name in writable_names(disk):
        try:
            attributes[name] = read_text(attribute_path(disk, name))
        except OSError as error:  # noqa: PERF203 - each may fail on its own
            if not queue_folder(disk).is_dir():
                raise vanished(disk) from error
            # Some drivers refuse to have some attributes read (EINVAL). We cannot have changed those, because
            # we read back every change.
    return QueueSnapshot(active, attributes)


def differences(disk: Disk, wanted: QueueSnapshot) -> dict[str, tuple[str, str | None]]:
    """Compares a queue with a snapshot: name -> (value in the snapshot, current value or None)."""
    now = snapshot(disk)
    found: dict[str, tuple[str, str | None]] = {}
    if wanted.scheduler is not None and now.scheduler != wanted.scheduler:
        found[SCHEDULER] = (wanted.scheduler, now.scheduler)
    for name, value in wanted.attributes.items():
        if now.attributes.get(name) != value:
            found[name] = (value, now.attributes.get(name))
    return found


def restore_snapshot(disk: Disk, wanted: QueueSnapshot) -> list[str]:
    """Restores a queue from a snapshot; writes only what differs, so it may be repeated.

    The scheduler comes first: switching resets nr_requests, wbt_lat_usec and others, and discards the
    tunables of the scheduler that is left. Writing one attribute can change another (slice_idle is also
    slice_idle_us; nr_requests bounds async_depth), so passes repeat until the queue equals the snapshot.

    Returns:
        The values written, for people.

    Raises:
        RestoreError: if a setting still differs at the end.
        DeviceVanishedError: if the disk is gone.
    """
    written: list[str] = []
    trouble: dict[str, str] = {}
    for _ in range(_PASSES):
        different = differences(disk, wanted)
        if not different:
            return written
        trouble = {}
        if SCHEDULER in different:
            try:
                set_scheduler(disk, different[SCHEDULER][0])
            except (SchedulerUnavailableError, TunableError) as error:
                trouble[SCHEDULER] = error.message
            else:
                written.append(f"{disk.name}: scheduler = {different[SCHEDULER][0]}")
            continue
        for name in sorted(different, key=write_order):
            value = wanted.attributes[name]
            try:
                if read_attribute(disk, name) == value:
                    continue  # an earlier write in this pass has set it
                write_once(attribute_path(disk, name), value)
            except TunableError as error:
                trouble[name] = error.message
            except OSError as error:
                raise_if_not_about_value(disk, name, error)
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
            f"{disk.name}: not all settings could be restored: {details}",
            hint=f"the attributes are files in {queue_folder(disk)}",
        )
    return written
