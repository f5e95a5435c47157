"""The kernel's mount table, and the mount that a path belongs to."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

_OCTAL = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True)
class Mount:
    """One line of ``/proc/PID/mountinfo`` (proc_pid_mountinfo(5))."""

    mount_id: int
    device_number: str
    """Device number of the superblock: ``254:0``, or ``0:N`` if the file system has no single device."""
    root: str
    """The mounted part of the file system: not ``/`` for bind mounts and subvolumes."""
    mount_point: str
    options: str
    filesystem: str
    source: str
    super_options: str

    @property
    def all_options(self) -> str:
        """Options of the mount and of the superblock, each once."""
        return ",".join(dict.fromkeys(f"{self.options},{self.super_options}".split(",")))

    def super_option(self, name: str) -> str | None:
        """The value of a superblock option ``name=value``, in which commas may be escaped."""
        for option in re.split(r"(?<!\\),", self.super_options):
            key, separator, value = option.partition("=")
            if separator and key == name:
                return re.sub(r"\\(.)", r"\1", value)
        return None


def unescape(text: str) -> str:
    """Decodes the octal escapes of mountinfo and fstab: spaces, tabs, newlines and backslashes."""
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), text)


def parse_mountinfo(text: str) -> list[Mount]:
    """Reads a mountinfo table, in mount order; skips malformed lines."""
    mounts = []
    for line in text.splitlines():
        before, separator, after = line.partition(" - ")
        fields, tail = before.split(" "), after.split(" ")
        if not separator or len(fields) < 6 or len(tail) < 3:
            continue
        mounts.append(
            Mount(
                mount_id=int(fields[0]),
                device_number=fields[2],
                root=unescape(fields[3]),
                mount_point=unescape(fields[4]),
                options=fields[5],
                filesystem=tail[0],
                source=unescape(tail[1]),
                super_options=unescape(tail[2]),
            )
        )
    return mounts


def read_mounts(proc: Path) -> list[Mount]:
    """The mounts that this process sees; empty if there is no mount table."""
    try:
        return parse_mountinfo(
            (proc / "self" / "mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
        )
    except OSError:
        return []


def mounts_of_all_namespaces(proc: Path) -> list[Mount]:
    """The mounts of every mount namespace with a visible process, each namespace once."""
    seen: set[str] = set()
    mounts: list[Mount] = []
    for process in sorted(proc.glob("[0-9]*")):
        try:
            namespace = os.readlink(process / "ns" / "mnt")  # noqa: PTH115 - the target is no path
            if namespace in seen:
                continue
            text = (process / "mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            continue  # it has ended, or we may not read it
        seen.add(namespace)
        mounts.extend(parse_mountinfo(text))
    return mounts or read_mounts(proc)


def mount_of(path: Path, proc: Path) -> Mount | None:
    """The mount that an existing path is on.

    The kernel names the mount, so stacked mounts and bind mounts are handled correctly. In a table that is
    not this process's own (as in tests), the longest mount point wins instead.
    """
    mounts = read_mounts(proc)
    mount_id = _mount_id(path, proc)
    for mount in mounts:
        if mount.mount_id == mount_id:
            return mount
    real = path.resolve()
    candidates = [mount for mount in mounts if real.is_relative_to(mount.mount_point)]
    # Of two mounts on one mount point, the later one hides the earlier one.
    return max(
        enumerate(candidates), key=lambda pair: (len(pair[1].mount_point), pair[0]), default=(0, None)
    )[1]


def _mount_id(path: Path, proc: Path) -> int | None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (OSError, AttributeError):  # only Linux has O_PATH
        return None
    try:
        information = (proc / "self" / "fdinfo" / str(descriptor)).read_text()
    except OSError:
        return None
    finally:
        os.close(descriptor)
    match = re.search(r"^mnt_id:\s*(\d+)$", information, re.MULTILINE)
    return int(match[1]) if match else None
