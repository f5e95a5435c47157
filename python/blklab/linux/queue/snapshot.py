"""Snapshots of all settings of a queue, and restoring them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from blklab.errors import RestoreError, SchedulerUnavailableError, TunableError, reason_of
from blklab.linux.cgroups.cost_control import CostControl
from blklab.linux.disks.disk import Disk
from blklab.linux.machine.kernel_files import write_once
from blklab.linux.queue.attributes import force_throttling, read_attribute
from blklab.linux.queue.coupling import restoring_rank
from blklab.linux.queue.schedulers import available_schedulers, is_foreign, set_scheduler
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
    for name in sorted(writable_names(disk), key=write_order):
        try:
            attributes[name] = read_text(attribute_path(disk, name))
        except OSError as error:  # noqa: PERF203 - each may fail on its own
            if not queue_folder(disk).is_dir():
                raise vanished(disk) from error
            # Some drivers refuse to have some attributes read (EINVAL). We cannot have changed those, because
            # we read back every change.
    return QueueSnapshot(active, attributes)


def write_order(name: str) -> tuple[bool, int, str]:
    """A sort key: tunables come after queue attributes, and effects after their causes."""
    return (name.startswith(TUNABLE_PREFIX), restoring_rank(name), name)


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


def restore_snapshot(disk: Disk, wanted: QueueSnapshot, *, held: Collection[str] = ()) -> list[str]:
    """Restores a queue from a snapshot; writes only what differs, so it may be repeated.

    The order is that of `blklab.linux.queue.coupling`: the scheduler comes first, because switching resets
    others, and what the kernel itself puts right is not written. Writing one attribute can change another
    (slice_idle is also slice_idle_us), so passes repeat until the queue equals the snapshot. io.cost must be
    as it was before. What a foreign scheduler refuses, it has learned itself (`is_foreign`).

    Args:
        disk: The disk.
        wanted: Its settings before.
        held: Attributes that cannot be restored yet, because a setting that holds them is still in force.

    Returns:
        The values written, for people.

    Raises:
        RestoreError: if a setting still differs at the end.
        DeviceVanishedError: if the disk is gone.
    """
    written: list[str] = []
    trouble: dict[str, str] = {}
    stuck: set[str] = set()
    learned: set[str] = set()
    for _ in range(_PASSES):
        different = _restorable(disk, wanted, {*held, *learned})
        if not different:
            return written
        stubborn = stuck & different.keys()
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
                _write(disk, name, value, again=name in stubborn)
                stuck.add(name)
            except TunableError as error:
                trouble[name] = error.message
            except OSError as error:
                raise_if_not_about_value(disk, name, error)
                trouble[name] = reason_of(error)
                if name.startswith(TUNABLE_PREFIX) and is_foreign(wanted.scheduler):
                    learned.add(name)
            else:
                written.append(f"{disk.name}: {name} = {value}")
    different = _restorable(disk, wanted, {*held, *learned})
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


def _restorable(
    disk: Disk, wanted: QueueSnapshot, held: Collection[str]
) -> dict[str, tuple[str, str | None]]:
    found = differences(disk, wanted)
    return {name: values for name, values in found.items() if name not in held}


def _write(disk: Disk, name: str, value: str, *, again: bool) -> None:
    """Restores one attribute; tries another way if an earlier pass has written it to no effect."""
    if again and force_throttling(disk, name, value):
        return
    cost = CostControl()
    # io.cost turned writeback throttling off before; a write would do so by hand.
    if not again and cost.held(disk).get(name) == value and cost.renew(disk):
        return
    write_once(attribute_path(disk, name), value)
