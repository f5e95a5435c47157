"""Test files and scratch files: room for them, and laying them out with real data."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from blklab.errors import BlklabError, RunFailedError, SpaceError, reason_of
from blklab.quantities.units import format_bytes

_CHUNK_BYTES = 1 << 20
_RESERVE_BYTES = 64 << 20
_RESERVE_SHARE = 0.02
"""A file system filled to the brim fragments files and stops its other users."""


def check_space(folder: Path, needed_bytes: int) -> None:
    """Makes sure that a folder can take that many bytes more, with a reserve left over.

    Raises:
        SpaceError: if it cannot, or the file system is read-only.
    """
    try:
        status = os.statvfs(folder)
    except OSError as error:
        raise SpaceError(f"{folder}: {reason_of(error)}") from error
    if status.f_flag & os.ST_RDONLY:
        raise _read_only(folder)
    free = status.f_bavail * status.f_frsize
    reserve = max(_RESERVE_BYTES, round(status.f_blocks * status.f_frsize * _RESERVE_SHARE))
    if needed_bytes + reserve > free:
        raise SpaceError(
            f"{folder} has {format_bytes(free)} free; the test data need {format_bytes(needed_bytes)}"
            f" and {format_bytes(reserve)} are to stay free",
            hint="free some space, or ask for less",
        )


def reserve(path: Path, length: int) -> None:
    """Creates a file whose blocks are reserved, for a loop device.

    Raises:
        SpaceError, RunFailedError: as `lay_out`.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            _allocate(descriptor, length)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise write_error(path, error) from error


def lay_out(folder: Path, lengths: Mapping[str, int]) -> None:
    """Creates files filled with random data, on disk when it returns.

    Holes or zeros would not do: a file system reads holes without the disk, and disks compress zeros.

    Raises:
        SpaceError: if there is not enough room after all, or the file system is read-only.
        RunFailedError: if the disk fails.
    """
    for name, length in lengths.items():
        path = folder / name
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                _allocate(descriptor, length)
                fill(descriptor, length)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise write_error(path, error) from error


def _allocate(descriptor: int, length: int) -> None:
    """Reserves a file's blocks, next to each other if possible, where the file system can do that."""
    try:
        os.posix_fallocate(descriptor, 0, length)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
            raise
        os.ftruncate(descriptor, length)


def fill(descriptor: int, length: int) -> None:
    """Writes random data to the first bytes of a file or device, to the disk itself."""
    written = 0
    while written < length:
        chunk = os.urandom(min(_CHUNK_BYTES, length - written))
        while chunk:
            count = os.write(descriptor, chunk)
            chunk = chunk[count:]
            written += count
    os.fsync(descriptor)
    with suppress(OSError):
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def write_error(path: Path, error: OSError) -> BlklabError:
    """The error of ours for a failed creation or write."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return SpaceError(f"no space for {path}", hint="free some space, or ask for less")
    if error.errno == errno.EROFS:
        return _read_only(path.parent)
    if error.errno in (errno.EACCES, errno.EPERM):
        return SpaceError(f"{path} may not be written: {(error.strerror or '').lower()}")
    return RunFailedError(f"{path} cannot be written: {reason_of(error)}")


def _read_only(folder: Path) -> SpaceError:
    return SpaceError(
        f"{folder} is on a read-only file system",
        hint="name another directory; a block device can be tested with reading workloads",
    )
