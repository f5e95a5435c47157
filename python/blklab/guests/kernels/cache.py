"""The cache of guest kernels, a directory in the XDG cache, and locks on the directories in it.

::

    builds/ID/       one built kernel: linux, config, build.json, build.log; never changes
    names/NAME       link to a build
    trees/ID/        the sources and objects of a build, from which variants are built in seconds
    sources/         archives of sources that were fetched from Debian's suites
    fetching/        downloads under way
    digests/ID.json  digests of a user's tree, so that unchanged files are not read again
    work/            builds under way; the next build removes the remains of a killed one
    logs/NAME.log    the compiler's output when a build failed
    building.lock    held while a kernel is being built
    store.lock       held while builds, names or trees change

A directory in ``builds`` or ``trees`` is always complete: it was created under ``work`` and then renamed.
Locks are advisory (``flock``), are on the directories themselves, and end with the process that holds them.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from blklab.errors import KernelCacheError, SpaceError, reason_of


def cache_folder(name: str) -> Path:
    """``blklab/NAME`` in ``$XDG_CACHE_HOME``, by default ``~/.cache``."""
    cache_home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache_home) / "blklab" / name


def kernel_cache() -> Path:
    """The folder of kernels, their sources and objects."""
    return cache_folder("kernels")


def make_folder(path: Path) -> Path:
    """Creates a directory of the cache if it is missing.

    Raises:
        SpaceError: if it cannot be created.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SpaceError(
            f"{path} cannot be created: {reason_of(error)}",
            hint="guest kernels are in the XDG cache; set XDG_CACHE_HOME to a directory with enough space",
        ) from error
    return path


@contextmanager
def locked(path: Path, on_wait: Callable[[], None] | None = None) -> Iterator[None]:
    """Holds an exclusive lock on a file, waiting for it if necessary.

    Args:
        path: The lock file; created if missing.
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
    """Prevents the removal of a directory of the cache; yields whether it exists.

    Any number of processes may pin a directory at a time. Pinning needs no write permission.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        yield False
        return
    try:
        # A process that removes the directory holds its lock only briefly, so this wait is short.
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield _is_still(folder, descriptor)
    finally:
        os.close(descriptor)


def remove_unless_pinned(folder: Path, trash: Path) -> bool:
    """Removes a directory of the cache unless it is pinned.

    Args:
        folder: The directory; it may be missing.
        trash: A directory on the same file system; the directory is first moved there, so that it disappears
            at once.

    Returns:
        Whether it is gone.
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
    """Atomically makes ``link`` point to ``target``, with a relative path."""
    make_folder(link.parent)
    temporary = link.with_name(f".{link.name}.{os.getpid()}")
    with suppress(FileNotFoundError):
        temporary.unlink()
    temporary.symlink_to(os.path.relpath(target, link.parent))
    temporary.replace(link)


def folder_size_bytes(folder: Path) -> int:
    """The disk space of a directory; symbolic links are not followed, hard links count once."""
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
    """Tells whether the opened directory still has that name."""
    try:
        return os.path.samestat(folder.stat(), os.fstat(descriptor))
    except OSError:
        return False
