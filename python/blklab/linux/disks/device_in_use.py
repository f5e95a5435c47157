"""Checks before writing to a block device: it must be unused and carry no signatures."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
from pathlib import Path

from blklab.errors import DeviceInUseError, MissingToolError, RequirementError, UnknownNameError, reason_of
from blklab.linux.directories.mounts import mounts_of_all_namespaces, read_mounts
from blklab.linux.disks.disk import Roots
from blklab.linux.machine.kernel_files import text_or_empty
from blklab.quantities.formatting import count_of


def check_writable_device(dev_path: str | Path, roots: Roots | None = None) -> None:
    """Makes sure that overwriting a device destroys no data and disturbs nobody.

    Looks for mounts in every mount namespace, swap, holders (device-mapper, md, bcache), membership in a
    btrfs, partitions, loop devices on top, processes that have it open, and signatures of file systems and
    partition tables; last, it asks the kernel for exclusive use.

    Raises:
        DeviceInUseError: with every reason against writing.
        RequirementError: if a check is impossible, which counts as a refusal.
    """
    reasons = reasons_against_writing(dev_path, roots)
    if reasons:
        raise DeviceInUseError(
            f"{dev_path} must not be written to: {'; '.join(reasons)}",
            hint="free it first (umount, swapoff, vgchange -an, mdadm --stop, wipefs -a), "
            "or name a directory or loop:1g",
        )


def reasons_against_writing(dev_path: str | Path, roots: Roots | None = None) -> list[str]:
    """All reasons against writing to a device; empty if it is free.

    Raises:
        RequirementError: if a check is impossible.
    """
    roots = roots or Roots()
    path = Path(dev_path)
    try:
        status = path.stat()
    except OSError as error:
        raise UnknownNameError(f"{path}: {reason_of(error)}") from error
    if not stat.S_ISBLK(status.st_mode):
        raise UnknownNameError(f"{path} is not a block device")
    number = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
    folder = (roots.sys / "dev" / "block" / number).resolve()
    partitions = sorted(entry.parent for entry in folder.glob("*/partition"))
    parts = {text_or_empty(part / "dev"): part.name for part in [folder, *partitions]}
    reasons = [
        *mounts_against_writing(parts, roots),
        *_swap(parts, roots),
        *_holders([folder, *partitions], roots),
        *([f"it has the partitions {_names(partitions)}"] if partitions else []),
        *_loops_on_top(parts, roots),
        *_open_in_processes(parts, roots),
    ]
    if text_or_empty(folder / "ro") == "1":
        reasons.append("it is read-only")
    refusal = _refusal_of_exclusive_use(path)
    if refusal is None or refusal[0] == errno.EBUSY:
        reasons += _signatures(path)
    if refusal is not None:
        reasons.append(refusal[1])
    return reasons


def mounts_against_writing(parts: dict[str, str], roots: Roots) -> list[str]:
    """Mounts by device number. A btrfs has none; `_holders` checks its members.

    Services have mount namespaces of their own, in which parts of a file system are mounted once more
    (systemd's PrivateTmp, ProtectSystem). Those places mean nothing to a person who sees the file system
    itself, and a file system that is mounted only there is still in use.
    """
    own = [mount for mount in read_mounts(roots.proc) if mount.device_number in parts]
    seen = {mount.device_number for mount in own}
    found = {f"{parts[mount.device_number]} is mounted on {mount.mount_point}" for mount in own}
    elsewhere: dict[str, list[str]] = {}
    for mount in mounts_of_all_namespaces(roots.proc):
        if mount.device_number in parts and mount.device_number not in seen:
            elsewhere.setdefault(parts[mount.device_number], []).append(mount.mount_point)
    for part, places in elsewhere.items():
        more = f" (and in {count_of(len(places) - 1, 'more place')})" if len(places) > 1 else ""
        found.add(f"{part} is mounted on {places[0]} in another mount namespace{more}")
    return sorted(found)


def _swap(parts: dict[str, str], roots: Roots) -> list[str]:
    found = []
    for line in text_or_empty(roots.proc / "swaps").splitlines()[1:]:
        name = line.split()[0].encode().decode("unicode_escape")  # spaces appear as \040
        number = _number_of(Path(name))
        if number in parts:
            found.append(f"{parts[number]} is in use as swap")
    return found


def _holders(folders: list[Path], roots: Roots) -> list[str]:
    found = []
    for folder in folders:
        holders = sorted(entry.name for entry in (folder / "holders").glob("*"))
        if holders:
            found.append(f"{folder.name} is held by {', '.join(holders)}")
        pools = sorted(
            entry.parent.parent.name for entry in roots.sys.glob(f"fs/btrfs/*/devices/{folder.name}")
        )
        found += [f"{folder.name} belongs to the mounted btrfs {pool}" for pool in pools]
    return found


def _loops_on_top(parts: dict[str, str], roots: Roots) -> list[str]:
    """Loop devices on top of the device; they do not claim it."""
    return [
        f"{entry.parent.parent.name} is a loop device on it"
        for entry in sorted(roots.sys.glob("block/loop*/loop/backing_file"))
        if _number_of(Path(text_or_empty(entry))) in parts
    ]


def why_not_readable(path: Path) -> str | None:
    """The reason why we cannot open a device for reading, for people; None if we can."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError as error:
        return f"it cannot be opened: {reason_of(error)}"
    return None


def _open_in_processes(parts: dict[str, str], roots: Roots) -> list[str]:
    """Processes that have the device open; a virtual machine or a database need not claim it either."""
    found: dict[int, str] = {}
    for folder in roots.proc.glob("[0-9]*"):
        process = int(folder.name)
        if process == os.getpid():
            continue
        try:
            links = list((folder / "fd").iterdir())
        except OSError:
            continue  # it has ended meanwhile
        if any(_number_of(link) in parts for link in links):
            found[process] = text_or_empty(folder / "comm")
    return [f"process {process} ({name}) has it open" for process, name in sorted(found.items())]


def _signatures(path: Path) -> list[str]:
    try:
        answer = subprocess.run(
            ["wipefs", "--no-act", "--json", str(path)], capture_output=True, text=True, check=False
        )
    except FileNotFoundError as error:
        raise MissingToolError(
            "wipefs is missing, so blklab cannot tell whether the device holds data",
            hint="apt install util-linux",
        ) from error
    if answer.returncode != 0:
        return [f"wipefs cannot look for signatures ({answer.stderr.strip()})"]
    if not answer.stdout.strip():
        return []
    try:
        entries = json.loads(answer.stdout)["signatures"]
        kinds = list(dict.fromkeys(str(entry["type"]) for entry in entries))
    except (ValueError, KeyError, TypeError) as error:
        raise RequirementError(f"cannot parse the output of wipefs for {path}: {error!r}") from error
    return [f"it has a signature of {kind}" for kind in kinds]


def _refusal_of_exclusive_use(path: Path) -> tuple[int | None, str] | None:
    """The error number and its meaning; None if the kernel grants exclusive use."""
    # Read-only, because closing a descriptor opened for writing makes udev probe the device again.
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
    except OSError as error:
        if error.errno == errno.EBUSY:
            return error.errno, "the kernel refuses exclusive use (O_EXCL): it is already claimed"
        return error.errno, f"it cannot be opened: {reason_of(error)}"
    return None


def _number_of(path: Path) -> str | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}" if stat.S_ISBLK(status.st_mode) else None


def _names(folders: list[Path]) -> str:
    return ", ".join(folder.name for folder in folders)
