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
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from blklab.errors import MissingToolError, NotRootError, RequirementError, reason_of
from blklab.linux.disks.disk import Disk, read_disk
from blklab.linux.disks.mounts import mount_of
from blklab.linux.machine.kernel_files import text_or_empty

if TYPE_CHECKING:
    from blklab.linux.journal.journal import Journal

_LOOP_CTL_ADD = 0x4C80
_LOOP_CTL_REMOVE = 0x4C81
_LOOP_CLR_FD = 0x4C01
"""ioctl requests of linux/loop.h."""
_NAME = re.compile(r"loop(\d+)")
_CONTROL = Path("/dev/loop-control")
_BLOCK = Path("/sys/block")
_HIGHEST_INDEX = 65535
"""Valid even if each loop device has 16 minor numbers for its partitions."""
_IN_MEMORY = frozenset({"tmpfs", "ramfs"})
"""File systems without a disk."""
_LOSETUP_ATTEMPTS = 3
_ATTEMPTS = 1500
"""Half a minute: a killed program may still wait for a busy disk."""
_PAUSE_SECONDS = 0.02


def create(journal: Journal, backing_file: Path) -> Disk:
    """Sets up a new loop device with direct I/O over an existing file.

    Raises:
        NotRootError: if we lack the permission.
        RequirementError: if there is no loop driver, or the file system does not support direct I/O.
        MissingToolError: if losetup is missing.
    """
    real = backing_file.resolve(strict=True)
    index = _add(journal, real)
    while not _attach(index, real):
        # Another process's `losetup --find` took the device that we had just added: it is theirs now.
        entry = journal.loop_entry(f"loop{index}")
        if entry is not None:
            journal.release(entry)
        index = _add(journal, real)
    folder = (_BLOCK / f"loop{index}").resolve()
    if (folder / "loop" / "dio").read_text().strip() != "1":
        raise RequirementError(
            f"the file system under {real} does not support direct I/O",
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
    return mount is not None and mount.filesystem in _IN_MEMORY


def remove(index: int, backing_file: Path) -> bool:
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
        attached = _attached_file(folder)
        if attached is not None:
            if attached.removesuffix(" (deleted)") != str(backing_file):
                return False  # another process has the number now
            _request(Path(f"/dev/loop{index}"), _LOOP_CLR_FD, 0, ignore=(errno.ENXIO, errno.EBUSY))
        elif _request(_CONTROL, _LOOP_CTL_REMOVE, index, ignore=(errno.EBUSY, errno.ENODEV)):
            return True
        if not folder.exists():
            return True
        time.sleep(_PAUSE_SECONDS)  # udev or another reader is about to close it
    raise RequirementError(
        f"loop{index} over {backing_file} is still in use", hint=f"see `fuser -v /dev/loop{index}`"
    )


def detach(journal: Journal, disk: Disk) -> None:
    """Removes one of our loop devices before the journal ends."""
    entry = journal.loop_entry(disk.name)
    if entry is not None:
        remove(entry["index"], Path(entry["backing_file"]))
        journal.release(entry)


def _attach(index: int, backing_file: Path) -> bool:
    """Attaches a file; returns False if another program has attached one already, or removed the device."""
    node, folder = f"/dev/loop{index}", _BLOCK / f"loop{index}"
    complaint = ""
    for _ in range(_LOSETUP_ATTEMPTS):
        try:
            answer = subprocess.run(
                ["losetup", "--direct-io=on", node, str(backing_file)],
                check=False,
                capture_output=True,
                text=True,
            )
        except FileNotFoundError as error:
            raise MissingToolError(
                "losetup is missing", hint="apt install mount (part of util-linux)"
            ) from error
        if not answer.returncode:
            return True
        if not folder.exists() or _attached_file(folder) not in (None, str(backing_file)):
            return False
        # Another program may have held the device at the moment when losetup failed.
        complaint = answer.stderr.strip()
    raise RequirementError(f"losetup cannot attach {backing_file} to {node}: {complaint}")


def _add(journal: Journal, backing_file: Path) -> int:
    index = first_free_index()
    while index <= _HIGHEST_INDEX:
        entry = journal.own_loop(index, backing_file)
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


def _attached_file(folder: Path) -> str | None:
    with suppress(OSError):
        return (folder / "loop" / "backing_file").read_text().rstrip("\n")
    return None


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
