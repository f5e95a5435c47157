"""The running kernel as a backend: real disks, the kernel's own schedulers, fio as the load generator.

`open` takes locks, recovers from killed runs, and starts a journal. A session records every change there
before making it, and undoes it when the session ends, whatever the cause.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from blklab.backends.host_session import HostSession
from blklab.backends.protocol import Session, SessionOptions
from blklab.errors import DeviceVanishedError, LockedError, RefusedError, RequirementError
from blklab.linux.directories.trusted_path import untrusted_component
from blklab.linux.disks.disk import Disk, read_disk
from blklab.linux.disks.loop import first_free_index
from blklab.linux.disks.offline import require_online
from blklab.linux.disks.resolution import Resolution, resolve
from blklab.linux.disks.zones import zoned_model
from blklab.linux.journal.journal import Journal
from blklab.linux.journal.locks import disk_locks
from blklab.linux.journal.recovery import raise_for_failures, recover
from blklab.linux.journal.state import state_directory
from blklab.linux.load.fio import find_fio
from blklab.linux.load.hdparm import find_hdparm
from blklab.linux.machine.requirements import require_linux, require_root
from blklab.linux.queue.schedulers import offered_schedulers
from blklab.linux.queue.snapshot import snapshot
from blklab.linux.scratch.directory import ScratchDirectory
from blklab.linux.scratch.loop import ScratchLoop
from blklab.linux.scratch.loop_array import FILESYSTEM, MOUNT_OPTIONS, ScratchLoopArray
from blklab.linux.scratch.loop_place import DEFAULT_SCRATCH_FOLDER, check_loop_place, memory_beneath
from blklab.linux.scratch.raw_device import RawDevice
from blklab.linux.scratch.run_folder import RunFolder
from blklab.linux.scratch.space import ScratchSpace
from blklab.quantities.units import format_bytes
from blklab.records.samples import DiskDescription, TargetDescription
from blklab.spec.drive_classes import known_rotational
from blklab.spec.experiment import Conditions
from blklab.spec.loads import Load
from blklab.spec.permits import rule_for
from blklab.spec.targets import LoopTarget, ModelTarget, PathTarget, Target

_SYS_BLOCK = Path("/sys/block")
_VIRTUAL_BLOCK = Path("/sys/devices/virtual/block")


class HostBackend:
    """Runs experiments on this machine's disks."""

    NAME = "host"
    TIMELINES = False
    COMMANDS = rule_for(Load.COMMAND, NAME) is None
    GUESTS = False
    HISTORY = False
    SWITCHBACK = True
    MODULES = True

    def default_machine(self, options: Conditions, kernels: Sequence[str | None]) -> None:
        """None: the disk's own machine computes."""

    def describe(self, target: Target) -> TargetDescription:
        """Describes the disks beneath a path, or the loop device that a target asks for.

        Raises:
            UnknownNameError: if there is no such path.
            RequirementError: if no disk is beneath it.
        """
        require_linux("testing a disk")
        if isinstance(target, LoopTarget):
            return _describe_planned_loop(target)
        return _describe_path(target, _resolve(target))

    @contextmanager
    def open(self, target: Target, options: SessionOptions) -> Iterator[Session]:
        """Opens a target; see the module."""
        if options.dry_run:
            yield self._dry_session(target, options)
            return
        require_root("testing a disk")
        fio = find_fio()
        with ExitStack() as stack:
            space: ScratchSpace
            watched: list[Disk] | None = None
            if isinstance(target, LoopTarget):
                folder = _scratch_folder(target)
                watched = _disks_under(folder)
                # The loop device's queue is new, but the disk under its file serves the I/O: lock that disk.
                stack.enter_context(disk_locks(watched, run_id=options.run_id))
                _recover_killed_runs()
                journal = stack.enter_context(Journal.create(options.run_id, f"test of {target.text}"))
                run_folder = RunFolder(options.run_id, journal)
                space, leaves = _create_loops(target, folder, run_folder, options, journal)
                description = _describe_loops(target, leaves)
            else:
                resolution = _resolve(target)
                leaves = resolution.leaves
                stack.enter_context(disk_locks(leaves, run_id=options.run_id))
                _recover_killed_runs()
                description = _describe_path(target, resolution)
                journal = stack.enter_context(Journal.create(options.run_id, f"test of {target.text}"))
                run_folder = RunFolder(options.run_id, journal)
                space = _space_of(resolution, options, run_folder, journal)
            stack.callback(space.close)
            for leaf in leaves:
                journal.protect_queue(leaf)
            session = HostSession(
                description,
                leaves,
                space,
                options,
                fio=fio,
                hdparm=find_hdparm(),
                journal=journal,
                run_folder=run_folder,
                watched=watched,
            )
            stack.callback(session.close)
            yield session

    def _dry_session(self, target: Target, options: SessionOptions) -> Session:
        description = self.describe(target)
        run_folder = RunFolder(options.run_id, None)
        space: ScratchSpace
        if isinstance(target, LoopTarget):
            leaves = [
                replace(read_disk(_VIRTUAL_BLOCK / disk.name), size_bytes=target.size_bytes)
                for disk in description.disks
            ]
            folder = _scratch_folder(target)
            space = (
                ScratchLoopArray(target, folder, run_folder, options.run_id, [leaf.name for leaf in leaves])
                if target.btrfs is not None
                else ScratchLoop(target.size_bytes, folder, options.run_id, leaves[0].name)
            )
        else:
            resolution = _resolve(target)
            leaves = resolution.leaves
            space = _space_of(resolution, options, run_folder, None)
        return HostSession(
            description,
            leaves,
            space,
            options,
            fio=find_fio(),
            hdparm=find_hdparm(),
            journal=None,
            run_folder=run_folder,
        )


BACKEND = HostBackend()


def _resolve(target: Target) -> Resolution:
    if isinstance(target, PathTarget):
        resolution = resolve(target.path)
        require_online(resolution.leaves)
        return resolution
    if isinstance(target, ModelTarget):
        raise RequirementError(f"{target.text} is a model, not a disk of this machine")
    return resolve(str(_scratch_folder(target)))


def _create_loops(
    target: LoopTarget, folder: Path, run_folder: RunFolder, options: SessionOptions, journal: Journal
) -> tuple[ScratchSpace, list[Disk]]:
    """Creates the loop devices that a target asks for, and the scratch space on them."""
    if target.btrfs is not None:
        names = _expected_loop_names(target)
        array = ScratchLoopArray(target, folder, run_folder, options.run_id, names)
        return array, array.create(journal)
    space = ScratchLoop(target.size_bytes, folder, options.run_id, _expected_loop_names(target)[0])
    return space, [space.create(journal)]


def _space_of(
    resolution: Resolution, options: SessionOptions, run_folder: RunFolder, journal: Journal | None
) -> ScratchSpace:
    path = Path(resolution.path).resolve()
    if resolution.kind == "block":
        return RawDevice(_own_node(path), allow_writes=options.allow_writes, journal=journal)
    folder = path if resolution.kind == "directory" else path.parent
    return ScratchDirectory(folder, options.run_id, run_folder, journal)


def _own_node(device: Path) -> Path:
    """The node of a block device that nobody else can replace: it is opened again and again.

    Raises:
        RefusedError: if there is none.
    """
    reason = untrusted_component(device)
    if reason is None:
        return device
    number = device.stat().st_rdev
    folder = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve()
    node = Path("/dev", folder.name.replace("!", "/"))
    if not node.is_block_device() or node.stat().st_rdev != number:
        raise RefusedError(
            f"another user could put another device in the place of {device}: {reason}",
            hint="name the device by its node in /dev",
        )
    return node


def _recover_killed_runs() -> None:
    """Restores the settings of killed runs, so that they are not mistaken for this machine's own."""
    reports = recover(state_directory())
    # If a living run holds a journal's disk, the journal has to wait; it does not concern this run.
    raise_for_failures([report for report in reports if not isinstance(report.error, LockedError)])


def _scratch_folder(target: LoopTarget) -> Path:
    folder = Path(target.directory) if target.directory is not None else DEFAULT_SCRATCH_FOLDER
    if not folder.is_dir():
        raise RequirementError(
            f"{target.text}: there is no directory {folder}", hint="name one: loop:1g,dir=PATH"
        )
    check_loop_place(folder, named=target.directory is not None)
    return folder


def _disks_under(folder: Path) -> list[Disk]:
    try:
        return resolve(str(folder)).leaves
    except RequirementError:
        return []  # not on a disk of this machine, so there is no disk to lock


def _describe_disk(leaf: Disk) -> DiskDescription:
    offer = offered_schedulers(leaf)
    return DiskDescription(
        name=leaf.name,
        model=leaf.model,
        size_bytes=leaf.size_bytes,
        rotational=leaf.rotational,
        scheduler=offer.active,
        schedulers=offer.names,
        queue=snapshot(leaf).attributes,
        identity=leaf.digest,
        zoned=zoned_model(leaf),
    )


def _describe_path(target: Target, resolution: Resolution) -> TargetDescription:
    disks = [_describe_disk(leaf) for leaf in resolution.leaves]
    details = {
        "kind": resolution.kind,
        "stack": " → ".join(resolution.stack),
        "source": resolution.source,
        "filesystem": resolution.filesystem or "",
        "mount_point": resolution.mount_point or "",
        "mount_options": resolution.mount_options or "",
    }
    what = f"{resolution.filesystem} on {resolution.mount_point}" if resolution.filesystem else "block device"
    parts = [f"{disk.name} ({_in_words(disk)})" for disk in disks]
    return TargetDescription(
        target=target.text,
        backend="host",
        summary=f"{target.text}: {what}, {' + '.join(parts)}",
        disks=disks,
        default_scheduler=_common_value([disk.scheduler for disk in disks]),
        schedulers=_common_schedulers(disks),
        details={key: value for key, value in details.items() if value},
    )


def _describe_loops(target: LoopTarget, leaves: Sequence[Disk]) -> TargetDescription:
    disks = [_describe_disk(leaf) for leaf in leaves]
    names = ", ".join(disk.name for disk in disks)
    return TargetDescription(
        target=target.text,
        backend="host",
        summary=_summary_of_loops(target, names),
        disks=disks,
        default_scheduler=_common_value([disk.scheduler for disk in disks]),
        schedulers=_common_schedulers(disks),
        details=_details_of_loops(target),
    )


def _summary_of_loops(target: LoopTarget, names: str) -> str:
    folder = _scratch_folder(target)
    size = f"{format_bytes(target.size_bytes)}{' each' if target.btrfs else ''}, direct I/O"
    if memory_beneath(folder) is not None:
        size += ", in memory: no disk is measured"
    if target.btrfs is None:
        return f"{target.text}: scratch file in {folder} as the loop device {names} ({size})"
    return (
        f"{target.text}: {FILESYSTEM} {target.btrfs} on scratch files in {folder} "
        f"as the loop devices {names} ({size})"
    )


def _details_of_loops(target: LoopTarget) -> dict[str, str]:
    details = {"kind": "loop", "scratch_folder": str(_scratch_folder(target))}
    if target.btrfs is not None:
        details |= {"filesystem": FILESYSTEM, "btrfs": target.btrfs, "mount_options": MOUNT_OPTIONS}
    return details


def _expected_loop_names(target: LoopTarget) -> list[str]:
    first = first_free_index()
    return [f"loop{first + number}" for number in range(target.members)]


def _describe_planned_loop(target: LoopTarget) -> TargetDescription:
    """Describes a loop device that does not exist yet: it will offer the same schedulers as others."""
    names = _expected_loop_names(target)
    active: str | None = None
    offered: list[str] = []
    for folder in [*sorted(_SYS_BLOCK.glob("loop*")), *sorted(_SYS_BLOCK.glob("*"))]:
        with suppress(DeviceVanishedError):  # another program may remove its loop device just now
            offer = offered_schedulers(read_disk(folder.resolve()))
            active, offered = offer.active, offer.names
        if offered:
            break
    return TargetDescription(
        target=target.text,
        backend="host",
        summary=_summary_of_loops(target, ", ".join(names)),
        disks=[
            DiskDescription(
                name=name,
                model="loop device",
                size_bytes=target.size_bytes,
                scheduler=active,
                schedulers=offered,
            )
            for name in names
        ],
        default_scheduler=active,
        schedulers=offered,
        details=_details_of_loops(target),
    )


def _in_words(disk: DiskDescription) -> str:
    rotational = known_rotational(disk.name, rotational=disk.rotational)
    kind = {True: "rotational", False: "not rotational", None: ""}[rotational]
    zoned = f"{disk.zoned} zoned" if disk.zoned else ""
    return ", ".join(part for part in (disk.model, format_bytes(disk.size_bytes), kind, zoned) if part)


def _common_value(values: Sequence[str | None]) -> str | None:
    return values[0] if values and len(set(values)) == 1 else None


def _common_schedulers(disks: Sequence[DiskDescription]) -> list[str]:
    return (
        [name for name in disks[0].schedulers if all(name in disk.schedulers for disk in disks)]
        if disks
        else []
    )
