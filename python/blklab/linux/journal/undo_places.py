"""Undoes directories and files: by inode and by descriptor, as the owner of a directory may rename in it.

What another user has put in the place of ours is left alone, and ours is removed wherever it is now in its
directory. The owner cannot move it further: that takes the right to write to it.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from blklab.errors import RestoreError, reason_of
from blklab.linux.directories.held_directory import FileIdentity, HeldDirectory, name_in, open_parent
from blklab.linux.journal.file import Entry

OWN_PREFIXES = (".blklab-", "blklab-")
"""Only directories whose names begin like this are ever removed with their contents."""
HELD = "held"
"""Key of the open directory in the entries of a living run; never written to a file."""
_LOOKS = 50
_PAUSE_SECONDS = 0.002
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_own_directory(entry: Entry) -> tuple[list[str], list[str]]:
    """Removes a directory that a run has made.

    Returns:
        What was done, and notes.

    Raises:
        RestoreError: if it cannot be removed, or it is not known whether it is ours.
        OSError: if the disk fails.
    """
    path = Path(entry["path"])
    held = entry.get(HELD)
    if isinstance(held, HeldDirectory):
        return _removed(held, path), []
    with _parent_of(entry) as parent:
        if parent is None:
            return [], []
        if not path.name.startswith(OWN_PREFIXES):
            raise RestoreError(f"{path} does not look like a directory of blklab's; remove it yourself")
        if entry.get("inode") is None:
            return _remove_without_identity(entry, parent, path)
        identity = FileIdentity(os.fstat(parent).st_dev, int(entry["inode"]))
        name = _found(parent, path, identity)
        if name is None:
            return [], _notes_on_another(parent, path)
        with _opened(parent, name, path) as directory:
            if directory.identity != identity:
                raise RestoreError(f"{path} is being replaced; `blklab restore` tries again")
            return _removed(directory, path), _notes_on_another(parent, path)


def _found(parent: int, path: Path, identity: FileIdentity) -> str | None:
    """The name that it has now; looks several times, as one that is being renamed may not be listed."""
    for _ in range(_LOOKS):
        name = name_in(parent, path.name, identity)
        if name is not None:
            return name
        time.sleep(_PAUSE_SECONDS)
    return None


def _remove_without_identity(entry: Entry, parent: int, path: Path) -> tuple[list[str], list[str]]:
    """Removes the directory of a run that was killed as it made it, or of an older version of blklab."""
    try:
        status = os.stat(path.name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return [], []
    if not stat.S_ISDIR(status.st_mode):
        return [], [f"{path} is no directory of blklab's: left alone"]
    if status.st_uid != os.geteuid():
        return [], [f"{path} belongs to user {status.st_uid}: left alone"]
    if "inode" in entry:
        # It had just been made: so it is empty.
        try:
            os.rmdir(path.name, dir_fd=parent)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.ENOENT):
                raise
            return [], [f"{path} is not the directory that blklab has made: left alone"]
        return [f"removed {path}"], []
    with _opened(parent, path.name, path) as directory:
        if os.fstat(directory.fileno()).st_uid != os.geteuid():
            raise RestoreError(f"{path} is being replaced; `blklab restore` tries again")
        return _removed(directory, path), []


def _removed(directory: HeldDirectory, path: Path) -> list[str]:
    return [f"removed {path}"] if directory.remove() else []


def _notes_on_another(parent: int, path: Path) -> list[str]:
    try:
        os.stat(path.name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return []
    return [f"{path} is not what blklab has made: left alone"]


@contextmanager
def _opened(parent: int, name: str, path: Path) -> Iterator[HeldDirectory]:
    try:
        descriptor = os.open(name, _DIRECTORY, dir_fd=parent)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            raise RestoreError(f"{path} is being replaced; `blklab restore` tries again") from error
        raise
    with HeldDirectory(path, descriptor) as directory:
        yield directory


def remove_own_file(entry: Entry) -> list[str]:
    """Removes a file that a run has made; says what was done.

    Raises:
        RestoreError: if it is no regular file any more.
        OSError: if the disk fails.
    """
    path = Path(entry["path"])
    with _parent_of(entry) as parent:
        if parent is None:
            return []
        try:
            status = os.stat(path.name, dir_fd=parent, follow_symlinks=False)
            if not stat.S_ISREG(status.st_mode):
                raise RestoreError(f"{path} is no longer a regular file; remove it yourself")
            os.unlink(path.name, dir_fd=parent)
        except FileNotFoundError:
            return []
    return [f"removed {path}"]


def _went_with_ours(folder: Path) -> bool:
    """Whether a directory is gone with one of ours, of which another entry told: then all in it is undone."""
    ours = (one for one in (folder, *folder.parents) if one.name.startswith(OWN_PREFIXES))
    return any(not os.path.lexists(one) for one in ours)


@contextmanager
def _parent_of(entry: Entry) -> Iterator[int | None]:
    """The open directory that an entry was made in; None if it went with one of our directories.

    If its file system is not mounted now, the empty mount point is there instead, with another inode number.

    Raises:
        RestoreError: if it is another one, or a symbolic link leads to it now.
    """
    path = Path(entry["path"])
    try:
        parent = open_parent(path)
    except OSError as error:
        if _went_with_ours(path.parent):
            yield None
            return
        raise RestoreError(
            f"{path}: its directory is gone ({reason_of(error)}); is the file system mounted?"
        ) from error
    try:
        if os.fstat(parent).st_ino != int(entry["parent_inode"]):
            raise RestoreError(
                f"{path}: its directory is gone, and another one has its name; is the file system mounted?"
                " was it renamed?"
            )
        yield parent
    finally:
        os.close(parent)
