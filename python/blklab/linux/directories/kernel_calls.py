"""System calls that Python has no function for: openat2(2), mount(2), umount2(2).

Each raises an auditing event, as Python's own functions for files do, so that tests can attack every step.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from pathlib import Path

_SYS_OPENAT2 = 437
"""The same on every architecture: asm-generic/unistd.h."""
_AT_FDCWD = -100
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_NO_SYMLINKS = 0x04
"""linux/openat2.h."""
_MS_REMOUNT = 0x20
_MS_BIND = 0x1000
_UMOUNT_NOFOLLOW = 0x8
"""linux/mount.h."""
NOSUID = os.ST_NOSUID
NODEV = 0x4
"""Flags of mount(2), which statvfs(3) reports with the same values."""
_KEPT_FLAGS = os.ST_RDONLY | 0x8
"""Those of the mount beneath that a bind mount keeps: ``ro`` and ``noexec``."""
_WITHOUT_OPENAT2 = (errno.ENOSYS, errno.EPERM, errno.EINVAL, errno.E2BIG)
"""Kernels before 5.6, and seccomp filters that do not know the call."""


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def open_without_links(path: Path) -> int:
    """Opens a directory by a path in which no component may be a symbolic link.

    Raises:
        OSError: ELOOP or ENOTDIR if one is; else as open(2).
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    sys.audit("blklab.openat2", str(path))
    how = _OpenHow(flags, 0, _RESOLVE_NO_SYMLINKS | _RESOLVE_NO_MAGICLINKS)
    libc = ctypes.CDLL(None, use_errno=True)
    name = os.fsencode(path)
    descriptor: int = libc.syscall(
        ctypes.c_long(_SYS_OPENAT2),
        ctypes.c_int(_AT_FDCWD),
        ctypes.c_char_p(name),
        ctypes.byref(how),
        ctypes.c_size_t(ctypes.sizeof(how)),
    )
    if descriptor >= 0:
        return descriptor
    number = ctypes.get_errno()
    if number not in _WITHOUT_OPENAT2:
        raise OSError(number, os.strerror(number), str(path))
    return _open_by_components(path, flags)


def _open_by_components(path: Path, flags: int) -> int:
    """The same one component after the other, each within the one before."""
    if not path.is_absolute():
        raise ValueError(f"{path} is relative")
    descriptor = os.open("/", flags)
    for name in path.parts[1:]:
        if name == "..":
            os.close(descriptor)
            raise OSError(errno.EINVAL, "a path with ..", str(path))
        try:
            inner = os.open(name, flags, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        descriptor = inner
    return descriptor


def bind_mount(descriptor: int, point: Path) -> None:
    """Mounts an open directory at another path: without set-user-id programs and without device nodes.

    Args:
        descriptor: The directory.
        point: An empty directory that nobody else can rename.

    Raises:
        OSError: as mount(2).
    """
    sys.audit("blklab.mount", descriptor, str(point))
    _mount(f"/proc/self/fd/{descriptor}", point, _MS_BIND)
    try:
        # The first call ignores all other flags.
        kept = os.fstatvfs(descriptor).f_flag & _KEPT_FLAGS
        _mount(None, point, _MS_REMOUNT | _MS_BIND | NOSUID | NODEV | kept)
    except BaseException:
        unmount_once(point)
        raise


def _mount(source: str | None, point: Path, flags: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    arguments = (
        ctypes.c_char_p(None if source is None else os.fsencode(source)),
        ctypes.c_char_p(os.fsencode(point)),
        ctypes.c_char_p(None),
        ctypes.c_ulong(flags),
        ctypes.c_void_p(None),
    )
    if libc.mount(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(point))


def unmount_once(point: Path) -> None:
    """Unmounts what is mounted last at a path, which may not be a symbolic link.

    Raises:
        OSError: EBUSY if it is in use; else as umount2(2).
    """
    sys.audit("blklab.umount", str(point))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.umount2(ctypes.c_char_p(os.fsencode(point)), ctypes.c_int(_UMOUNT_NOFOLLOW)):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(point))


def mount_id(descriptor: int) -> int | None:
    """The number of the mount that an open file is on; None without procfs."""
    try:
        lines = Path(f"/proc/self/fdinfo/{descriptor}").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("mnt_id:")), None)
