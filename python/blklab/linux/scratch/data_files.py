"""Test files and scratch files: checking free space, and laying them out with random data."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from blklab.errors import BlklabError, RefusedError, RunFailedError, SpaceError, reason_of
from blklab.linux.directories.held_directory import mount_of_descriptor
from blklab.linux.scratch.loop_place import user_behind
from blklab.quantities.units import format_bytes

_CHUNK_BYTES = 1 << 20
_NEW_FILE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_RESERVE_BYTES = 64 << 20
_RESERVE_SHARE = 0.02
"""A full file system fragments files and stops its other users."""


def check_space(folder: Path, needed_bytes: int) -> None:
    """Makes sure that a directory has space for that many more bytes, plus a reserve.

    Raises:
        SpaceError: if it has not, or the file system is read-only.
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
            f" and {format_bytes(reserve)} must stay free",
            hint="free some space, or test with smaller files",
        )


@contextmanager
def reserved(parent: int, path: Path, length: int) -> Iterator[int]:
    """Creates a file with all its blocks allocated, for a loop device, and holds it open.

    Args:
        parent: The open directory in which to create it.
        path: Its path, of which only the name is used, but for messages.
        length: Its length in bytes.

    Raises:
        RefusedError: if other users could write to it.
        SpaceError, RunFailedError: as `lay_out`.
    """
    status = os.fstat(parent)
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise RefusedError(
            f"others could write to {path}, as its file system keeps no owners; blklab would mount it",
            hint="put the scratch file on another file system",
        )
    user = user_behind(mount_of_descriptor(parent))
    if user is not None:
        raise RefusedError(
            f"{path} would be on a file system that a program of user {user} serves (FUSE); blklab would"
            " mount what that program says",
            hint="put the scratch file on another file system",
        )
    try:
        descriptor = os.open(path.name, _NEW_FILE, 0o600, dir_fd=parent)
    except OSError as error:
        raise write_error(path, error) from error
    try:
        try:
            _allocate(descriptor, length)
            os.fsync(descriptor)
        except OSError as error:
            raise write_error(path, error) from error
        yield descriptor
    finally:
        os.close(descriptor)


def lay_out(folder: Path, lengths: Mapping[str, int]) -> None:
    """Creates files filled with random data in a directory where nobody else may rename.

    Returns once they are on disk.

    Holes and zeros would falsify results: a file system reads holes without the disk, and disks compress
    zeros.

    Raises:
        SpaceError: if there is not enough space after all, or the file system is read-only.
        RunFailedError: if the disk fails.
    """
    for name, length in lengths.items():
        path = folder / name
        try:
            descriptor = os.open(path, _NEW_FILE, 0o600)
            try:
                _allocate(descriptor, length)
                fill(descriptor, length)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise write_error(path, error) from error


def _allocate(descriptor: int, length: int) -> None:
    """Allocates a file's blocks, contiguously if possible, if the file system supports that."""
    try:
        os.posix_fallocate(descriptor, 0, length)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
            raise
        os.ftruncate(descriptor, length)


def fill(descriptor: int, length: int) -> None:
    """Fills the first bytes of a file or device with random data, and flushes them to the disk."""
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
    """Translates the error of a failed creation or write."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return SpaceError(f"no space for {path}", hint="free some space, or test with smaller files")
    if error.errno == errno.EROFS:
        return _read_only(path.parent)
    if error.errno in (errno.EACCES, errno.EPERM):
        return SpaceError(f"no permission to write {path}: {(error.strerror or '').lower()}")
    return RunFailedError(f"{path} cannot be written: {reason_of(error)}")


def _read_only(folder: Path) -> SpaceError:
    return SpaceError(
        f"{folder} is on a read-only file system",
        hint="name another directory; a block device can be tested with read-only workloads",
    )
