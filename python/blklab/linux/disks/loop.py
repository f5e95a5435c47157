"""Loop devices with direct I/O over a scratch file.

Each of our devices is new, with its own number, and is removed at the end together with its queue settings.
Existing loop devices keep their settings, even if no file is attached to them.
"""

from __future__ import annotations

import errno
import fcntl
import itertools
import os
import re
import stat
import struct
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blklab.errors import NotRootError, RefusedError, RequirementError, reason_of
from blklab.linux.directories.held_directory import FileIdentity
from blklab.linux.directories.mounts import mount_of
from blklab.linux.disks.disk import Disk, read_disk
from blklab.linux.machine.kernel_files import text_or_empty

if TYPE_CHECKING:
    from blklab.linux.journal.journal import Journal

_LOOP_CTL_ADD = 0x4C80
_LOOP_CTL_REMOVE = 0x4C81
_LOOP_SET_FD = 0x4C00
_LOOP_CLR_FD = 0x4C01
_LOOP_GET_STATUS64 = 0x4C05
_LOOP_SET_DIRECT_IO = 0x4C08
_LOOP_CONFIGURE = 0x4C0A
"""ioctl requests of linux/loop.h."""
_INFO = struct.Struct("=QQQQQIIII64s64s32s16x")
"""struct loop_info64: first st_dev and st_ino of the file; the eighth field has the flags."""
_CONFIGURATION = struct.Struct("=II232s64x")
"""struct loop_config: file descriptor, block size, loop_info64."""
_DIRECT_IO = 16
"""LO_FLAGS_DIRECT_IO."""
_WITHOUT_CONFIGURE = (errno.EINVAL, errno.ENOTTY, errno.ENOSYS)
"""Kernels before 5.8."""
_NAME = re.compile(r"loop(\d+)")
_CONTROL = Path("/dev/loop-control")
_BLOCK = Path("/sys/block")
_HIGHEST_INDEX = 65535
"""Valid even if each loop device has 16 minor numbers for its partitions."""
IN_MEMORY = frozenset({"tmpfs", "ramfs"})
"""File systems without a disk."""
_ATTACH_ATTEMPTS = 3
_ATTEMPTS = 1500
"""Half a minute: a killed program may still wait for a busy disk."""
_PAUSE_SECONDS = 0.02


@dataclass(frozen=True)
class BackingFile:
    """The file under a loop device: recognised by device and inode, as its path may change."""

    path: Path
    """Where it was made."""
    identity: FileIdentity | None
    """None in journals of older versions of blklab."""

    @staticmethod
    def of(path: Path, descriptor: int) -> BackingFile:
        """An open file."""
        return BackingFile(path, FileIdentity.of_descriptor(descriptor))

    @staticmethod
    def from_entry(entry: Mapping[str, Any]) -> BackingFile:
        """The file of a journal's entry."""
        known = "inode" in entry
        identity = FileIdentity(int(entry["device"]), int(entry["inode"])) if known else None
        return BackingFile(Path(entry["backing_file"]), identity)

    def as_entry(self) -> dict[str, str | int]:
        """The same for a journal's entry."""
        entry: dict[str, str | int] = {"backing_file": str(self.path)}
        if self.identity is not None:
            entry |= {"device": self.identity.device, "inode": self.identity.inode}
        return entry

    def is_under(self, index: int) -> bool:
        """Whether it is what a loop device is attached to."""
        attached = attached_file(index)
        if attached is None:
            return False
        if self.identity is None:
            return attached.removesuffix(" (deleted)") == str(self.path)
        return attached_identity(index) == self.identity


def create(journal: Journal, backing_file: Path) -> Disk:
    """Sets up a new loop device over an existing file whose path nobody else can change.

    Raises:
        OSError: if the file cannot be opened.
        BlklabError: as `create_over`.
    """
    real = backing_file.parent.resolve(strict=True) / backing_file.name
    descriptor = os.open(real, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return create_over(journal, descriptor, real)
    finally:
        os.close(descriptor)


def create_over(journal: Journal, descriptor: int, path: Path) -> Disk:
    """Sets up a new loop device with direct I/O over an open file.

    Args:
        journal: Records it, and removes it at the end.
        descriptor: The file, open for reading and writing.
        path: Its path, for messages.

    Raises:
        NotRootError: if we lack the permission.
        RequirementError: if there is no loop driver, or the file system does not support direct I/O.
        RefusedError: if the file is not a regular one, or another one is attached.
    """
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise RefusedError(f"{path} is not a regular file")
    backing = BackingFile.of(path, descriptor)
    index = _add(journal, backing)
    while not _attach(index, descriptor, backing):
        # Another process's `losetup --find` took the device that we had just added: it is theirs now.
        entry = journal.loop_entry(f"loop{index}")
        if entry is not None:
            journal.release(entry)
        index = _add(journal, backing)
    if not backing.is_under(index):
        raise RefusedError(f"loop{index} is over {attached_file(index)}, not over {path}")
    folder = (_BLOCK / f"loop{index}").resolve()
    if (folder / "loop" / "dio").read_text().strip() != "1":
        raise RequirementError(
            f"the file system under {path} does not support direct I/O",
            hint="put the scratch file on a disk: loop:1g,dir=/var/tmp",
        )
    return read_disk(folder)


def is_in_memory(name: str, sys_block: Path = _BLOCK, proc: Path = Path("/proc")) -> bool:
    """Whether a block device is a loop device over a file in memory.

    Args:
        name: The kernel's name of it.
        sys_block: The folder of all disks.
        proc: The mount point of procfs.
    """
    file = text_or_empty(sys_block / name / "loop" / "backing_file")
    mount = mount_of(Path(file), proc) if file else None
    return mount is not None and mount.filesystem in IN_MEMORY


def remove(index: int, backing: BackingFile) -> bool:
    """Detaches and removes a loop device if it is still ours: attached to that file or to none.

    Returns:
        Whether it was removed.

    Raises:
        RequirementError: if a process still has it open.
    """
    folder = _BLOCK / f"loop{index}"
    if not folder.exists():
        return False
    for _ in range(_ATTEMPTS):
        if attached_file(index) is not None:
            if not backing.is_under(index):
                return False  # another process has the number now
            _request(Path(f"/dev/loop{index}"), _LOOP_CLR_FD, 0, ignore=(errno.ENXIO, errno.EBUSY))
        elif _request(_CONTROL, _LOOP_CTL_REMOVE, index, ignore=(errno.EBUSY, errno.ENODEV)):
            return True
        if not folder.exists():
            return True
        time.sleep(_PAUSE_SECONDS)  # udev or another reader is about to close it
    raise RequirementError(
        f"loop{index} over {backing.path} is still in use and stays",
        hint=f"see `fuser -v /dev/loop{index}`; then `losetup -d /dev/loop{index}`",
    )


def detach(journal: Journal, disk: Disk) -> None:
    """Removes one of our loop devices before the journal ends."""
    entry = journal.loop_entry(disk.name)
    if entry is not None:
        remove(entry["index"], BackingFile.from_entry(entry))
        journal.release(entry)


def _attach(index: int, descriptor: int, backing: BackingFile) -> bool:
    """Attaches a file; returns False if another program has attached one already, or removed the device."""
    complaint = ""
    for _ in range(_ATTACH_ATTEMPTS):
        try:
            with _opened(index) as device:
                _configure(device, descriptor, backing)
        except OSError as error:  # noqa: PERF203 - each may fail on its own
            if error.errno in (errno.ENOENT, errno.ENXIO, errno.ENODEV) or _is_of_another(index, backing):
                return False
            # Another program may have held the device at that moment.
            complaint = reason_of(error)
        else:
            return True
    raise RequirementError(f"{backing.path} cannot be attached to /dev/loop{index}: {complaint}")


def _is_of_another(index: int, backing: BackingFile) -> bool:
    attached = attached_file(index)
    return not (_BLOCK / f"loop{index}").exists() or (attached is not None and not backing.is_under(index))


def _configure(device: int, descriptor: int, backing: BackingFile) -> None:
    """Attaches the file itself, whatever its path leads to now."""
    name = os.fsencode(backing.path)[:63]
    info = _INFO.pack(0, 0, 0, 0, 0, 0, 0, 0, _DIRECT_IO, name, b"", b"")
    try:
        fcntl.ioctl(device, _LOOP_CONFIGURE, _CONFIGURATION.pack(descriptor, 0, info))
    except OSError as error:
        if error.errno not in _WITHOUT_CONFIGURE:
            raise
        fcntl.ioctl(device, _LOOP_SET_FD, descriptor)
        with suppress(OSError):  # the caller reads whether it works
            fcntl.ioctl(device, _LOOP_SET_DIRECT_IO, 1)


def attached_identity(index: int) -> FileIdentity | None:
    """Device and inode of the file under a loop device; None if there is none."""
    try:
        with _opened(index, os.O_RDONLY) as device:
            answer = fcntl.ioctl(device, _LOOP_GET_STATUS64, bytes(_INFO.size))
    except OSError:
        return None
    device_number, inode, *_ = _INFO.unpack(answer)
    return FileIdentity(device_number, inode)


def _add(journal: Journal, backing: BackingFile) -> int:
    index = first_free_index()
    while index <= _HIGHEST_INDEX:
        entry = journal.own_loop(index, backing)
        try:
            if _request(_CONTROL, _LOOP_CTL_ADD, index, ignore=(errno.EEXIST,)):
                _wait_for_node(index)
                return index
        except OSError as error:
            journal.release(entry)
            reason = reason_of(error)
            if error.errno in (errno.EACCES, errno.EPERM):
                raise NotRootError(
                    f"no permission to create loop devices: {reason}", hint="run as root"
                ) from error
            raise RequirementError(
                f"loop devices cannot be created: {reason}",
                hint="is the loop driver loaded? try `modprobe loop`",
            ) from error
        journal.release(entry)  # another process took this number first
        index += 1
    raise RequirementError("no loop device is free")


def first_free_index() -> int:
    """The lowest number that no loop device has, whether attached or not."""
    used = {int(match[1]) for entry in _BLOCK.glob("loop*") if (match := _NAME.fullmatch(entry.name))}
    return next(index for index in itertools.count() if index not in used)


def _wait_for_node(index: int) -> None:
    node = Path(f"/dev/loop{index}")
    for _ in range(_ATTEMPTS):
        # Another program may have taken the device and removed it: attaching a file finds that out.
        if node.exists() or not (_BLOCK / f"loop{index}").exists():
            return
        time.sleep(_PAUSE_SECONDS)
    raise RequirementError(f"{node} does not appear", hint="in a container: give it the host's /dev")


def attached_file(index: int) -> str | None:
    """The path of the file under a loop device, with " (deleted)" if it has none; None without a file."""
    with suppress(OSError):
        return (_BLOCK / f"loop{index}" / "loop" / "backing_file").read_text().rstrip("\n")
    return None


@contextmanager
def _opened(index: int, mode: int = os.O_RDWR) -> Iterator[int]:
    descriptor = os.open(f"/dev/loop{index}", mode | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _request(path: Path, request: int, argument: int, *, ignore: tuple[int, ...]) -> bool:
    """Issues one ioctl; returns False if it fails with one of the errors to ignore."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        if errno.ENODEV in ignore or errno.ENXIO in ignore:
            return False
        raise
    try:
        fcntl.ioctl(descriptor, request, argument)
    except OSError as error:
        if error.errno in ignore:
            return False
        raise
    finally:
        os.close(descriptor)
    return True
