"""Removes what is in a directory by descriptors: nothing outside of it, whatever is renamed meanwhile.

Only the directory and two levels below are open at a time: a directory further down is first moved up. So
neither the depth of a tree nor the length of its paths matters.
"""

from __future__ import annotations

import errno
import itertools
import os
from collections.abc import Iterator
from typing import NamedTuple

from blklab.errors import RestoreError
from blklab.linux.directories.kernel_calls import mount_id

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_ROUNDS = 100
"""A program that makes files in the tree all the time would keep it from ever being empty."""
_DEEPEST_VOLUMES = 50
"""Subvolumes of btrfs within one another, out of which nothing can be moved."""
_CHANGED = (errno.ENOTDIR, errno.EISDIR, errno.ENOENT, errno.ELOOP, errno.ENOTEMPTY, errno.EEXIST)
"""Errors that say that an entry has just been replaced: the next round sees what is there now."""


def remove_contents(descriptor: int, name: str, *, depth: int = 0) -> None:
    """Empties an open directory. Symbolic links go themselves; what they point to stays.

    Args:
        descriptor: The directory.
        name: Its name, for messages.
        depth: Number of file systems that it is in.

    Raises:
        RestoreError: if a file system is mounted below it, or it does not become empty.
        OSError: if the disk fails.
    """
    if depth > _DEEPEST_VOLUMES:
        raise RestoreError(f"{name}: more than {_DEEPEST_VOLUMES} subvolumes are within one another there")
    numbers = itertools.count()
    for _ in range(_MOST_ROUNDS):
        pending = [(entry.name, entry.is_directory) for entry in entries_of(descriptor)]
        if not pending:
            return
        while pending:
            entry, is_directory = pending.pop()
            try:
                if is_directory:
                    lifted = _remove_directory(descriptor, entry, name, numbers, depth)
                    pending += [(one, True) for one in lifted]
                else:
                    os.unlink(entry, dir_fd=descriptor)
            except OSError as error:
                if error.errno not in _CHANGED:
                    raise
    raise RestoreError(f"{name} does not become empty: a program makes files there")


def _remove_directory(parent: int, entry: str, name: str, numbers: Iterator[int], depth: int) -> list[str]:
    """Removes a directory, of which it moves the inner ones up into its parent if they are not empty.

    Returns:
        The new names of those that it has moved.
    """
    lifted = []
    inner = os.open(entry, _DIRECTORY, dir_fd=parent)
    try:
        if mount_id(inner) != mount_id(parent):
            raise _mounted(name, entry)
        for below, _, is_directory in entries_of(inner):
            if not is_directory:
                os.unlink(below, dir_fd=inner)
                continue
            try:
                os.rmdir(below, dir_fd=inner)
            except OSError as error:
                if error.errno == errno.EBUSY:
                    raise _mounted(name, below) from error
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                moved = _lift(inner, below, parent, name, numbers, depth)
                lifted += [] if moved is None else [moved]
    finally:
        os.close(inner)
    os.rmdir(entry, dir_fd=parent)
    return lifted


def _lift(inner: int, below: str, parent: int, name: str, numbers: Iterator[int], depth: int) -> str | None:
    """Moves a directory up by one level and returns its new name, or removes it where it is."""
    for number in numbers:
        lifted = f".blklab-lifted-{number}"
        try:
            os.rename(below, lifted, src_dir_fd=inner, dst_dir_fd=parent)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                continue  # the name is taken
            if error.errno == errno.EBUSY:
                raise _mounted(name, below) from error
            if error.errno != errno.EXDEV:
                raise
            break  # a subvolume of btrfs, or a directory of an overlay's lower layer
        else:
            return lifted
    descriptor = os.open(below, _DIRECTORY, dir_fd=inner)
    try:
        if mount_id(descriptor) != mount_id(inner):
            raise _mounted(name, below)
        remove_contents(descriptor, name, depth=depth + 1)
    finally:
        os.close(descriptor)
    os.rmdir(below, dir_fd=inner)
    return None


def _mounted(name: str, at: str) -> RestoreError:
    return RestoreError(f"{name}: a file system is mounted there (at {at}); unmount it first")


class DirectoryEntry(NamedTuple):
    """An entry as its directory describes it."""

    name: str
    inode: int
    is_directory: bool


def entries_of(descriptor: int) -> list[DirectoryEntry]:
    """Lists an open directory as it is now.

    It is opened once more: on btrfs an open directory lists only what was there when it was opened.
    """
    again = os.open(".", _DIRECTORY, dir_fd=descriptor)
    try:
        with os.scandir(again) as entries:
            return [
                DirectoryEntry(entry.name, entry.inode(), entry.is_dir(follow_symlinks=False))
                for entry in entries
            ]
    finally:
        os.close(again)
