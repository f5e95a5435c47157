"""The folder of guest kernels under the XDG cache, and locks on the folders in it.

::

    builds/ID/       one built kernel: linux, config, build.json, build.log; never changed once it is there
    names/NAME       link to a build
    trees/ID/        the sources and objects of a build, from which variants are built in seconds
    digests/ID.json  digests of a person's tree, so that an unchanged file is not read again
    work/            builds under way; whatever a killed one left is removed by the next
    logs/NAME.log    what the compiler said when a build failed
    building.lock    held while a kernel is being built
    store.lock       held for the moment in which builds, names or trees change

A folder that appears in ``builds`` or ``trees`` is complete: it was made under ``work`` and renamed.
Locks are advisory (``flock``), on the folders themselves, and end with the process that holds them.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from blklab.errors import KernelCacheError, SpaceError, reason_of


def kernel_cache() -> Path:
    """``blklab/kernels`` in ``$XDG_CACHE_HOME``, by default ``~/.cache``."""
    cache_home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache_home) / "blklab" / "kernels"


def make_folder(path: Path) -> Path:
    """Makes a folder of the cache where it is missing.

    Raises:
        SpaceError: if it cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SpaceError(
            f"{path} cannot be made: {reason_of(error)}",
            hint="guest kernels are kept in the XDG cache folder; set XDG_CACHE_HOME to a place with room",
        ) from error
    return path


@contextmanager
def locked(path: Path, on_wait: Callable[[], None] | None = None) -> Iterator[None]:
    """Holds the lock file ``path`` for this process alone, waiting for it if need be.

    Args:
        path: The lock file, made where it is missing.
        on_wait: Called once if another process holds the lock.
    """
    make_folder(path.parent)
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise SpaceError(f"{path} cannot be written: {reason_of(error)}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if on_wait is not None:
                on_wait()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def pinned(folder: Path) -> Iterator[bool]:
    """Keeps others from removing a folder of the cache; gives whether it is there.

    Any number of processes may keep a folder at a time; it needs no right to write.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        yield False
        return
    try:
        # Someone who removes it holds it for the moment that this takes, so this wait is short.
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield _is_still(folder, descriptor)
    finally:
        os.close(descriptor)


def remove_unless_pinned(folder: Path, trash: Path) -> bool:
    """Removes a folder of the cache; gives whether it did, which it does not while someone keeps it.

    Args:
        folder: What is to go; nothing happens if it is not there.
        trash: A folder on the same file system, where it is moved first so that it vanishes at once.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    except NotADirectoryError:
        folder.unlink()
        return True
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        make_folder(trash)
        moved = trash / f"removed-{os.getpid()}-{folder.name}"
        try:
            folder.rename(moved)
        except OSError as error:
            raise KernelCacheError(f"{folder} cannot be removed: {reason_of(error)}") from error
    finally:
        os.close(descriptor)
    shutil.rmtree(moved, ignore_errors=True)
    return True


def replace_link(link: Path, target: Path) -> None:
    """Makes ``link`` point to ``target`` (relative to the link's folder), in one step."""
    make_folder(link.parent)
    temporary = link.with_name(f".{link.name}.{os.getpid()}")
    with suppress(FileNotFoundError):
        temporary.unlink()
    temporary.symlink_to(os.path.relpath(target, link.parent))
    temporary.replace(link)


def folder_size_bytes(folder: Path) -> int:
    """What a folder occupies on its disk; links count for themselves, hard links once."""
    seen: set[int] = set()
    total = 0
    for parent, _, files in os.walk(folder):
        for name in files:
            with suppress(OSError):
                status = os.lstat(os.path.join(parent, name))  # noqa: PTH118 - 25,000 files: pathlib is slow
                if status.st_ino not in seen:
                    seen.add(status.st_ino)
                    total += status.st_blocks * 512
    return total


def _is_still(folder: Path, descriptor: int) -> bool:
    """Whether the opened folder is still the one of that name."""
    try:
        return os.path.samestat(folder.stat(), os.fstat(descriptor))
    except OSError:
        return False
