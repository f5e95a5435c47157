"""Scratch directories of guests: in memory, and removed with their session, whatever ends it.

::

    /dev/shm/blklab-guests-*/            one per session, mode 700
        lock                             held (flock) while the session lives
        shared/                          kernels and programs, copied once
        run-0/                           one per guest: its whole file system; see `GuestFolder`

A guest's memory is an unlinked file in its directory, which disappears with its process. A session directory
whose lock is free belonged to a killed session; the next session removes it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from blklab.errors import RequirementError, SpaceError
from blklab.linux.processes.signals import shielded
from blklab.quantities.units import format_bytes

SCRATCH_VARIABLE = "BLKLAB_SCRATCH"
"""Environment variable that names another directory for scratch directories."""

MEMORY_FOLDER = Path("/dev/shm")  # noqa: S108 - our directories in it are new, with mode 700
_PREFIX = "blklab-guests-"
_LOCK = "lock"
_SHARED = "shared"
_PROGRAMS_BYTES = 48 << 20
"""Size of the kernel, the guest program, fio and mkfs with their libraries, and a log, with a reserve."""
MOUNT_POINTS = ("dev", "proc", "sys", "tmp", "run", "mnt")
"""Directories on which the guest mounts file systems."""
_SLACK = 16 << 20
_READ_ONLY_PROGRAM = 0o555


@dataclass(frozen=True)
class GuestFolder:
    """The root file system of one guest: the only part of this machine that it sees."""

    path: Path

    @property
    def log(self) -> Path:
        """The output of its kernel and programs."""
        return self.path / "log"


class SessionFolder:
    """The scratch directory of one session; `remove` removes it."""

    def __init__(self, parent: Path) -> None:
        with shielded():
            self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
            self._lock = os.open(self.path / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        (self.path / _SHARED).mkdir()
        self._number = 0
        self._mutex = threading.Lock()

    def share(self, source: Path, name: str) -> Path:
        """Copies a program into the session, once, so that it stays intact if the original disappears.

        Raises:
            SpaceError: if there is too little space.
            RequirementError: if it cannot be read.
        """
        copy = self.path / _SHARED / name
        with self._mutex:
            if not copy.exists():
                copy.parent.mkdir(parents=True, exist_ok=True)
                _copied(source, copy)
        return copy

    def new_guest(self, files: Mapping[str, Path], texts: Mapping[str, str]) -> GuestFolder:
        """Creates the directory of a guest.

        Args:
            files: Shared files, by their path in the guest.
            texts: Contents of further files, by name.

        Raises:
            SpaceError: if there is too little space.
        """
        with self._mutex:
            path = self.path / f"run-{self._number}"
            self._number += 1
        try:
            path.mkdir()
            for name in MOUNT_POINTS:
                (path / name).mkdir()
            for name, source in files.items():
                (path / name).parent.mkdir(parents=True, exist_ok=True)
                os.link(source, path / name)
            for name, text in texts.items():
                (path / name).write_text(text, encoding="utf-8")
        except OSError as error:
            raise _no_room(error, path) from error
        return GuestFolder(path)

    def remove_guest(self, folder: GuestFolder) -> None:
        """Removes the directory of a guest that has ended, which frees its space."""
        shutil.rmtree(folder.path, ignore_errors=True)

    def remove(self) -> None:
        """Removes everything; guests must have ended."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def choose_scratch(needed_bytes: int) -> tuple[Path, int]:
    """Chooses the directory for scratch directories, and the number of guests that fit there.

    Args:
        needed_bytes: Memory of one guest.

    Raises:
        SpaceError: if not even one guest fits.
        RequirementError: if no directory is writable.
    """
    each = needed_bytes + _PROGRAMS_BYTES
    named = os.environ.get(SCRATCH_VARIABLE)
    candidates = [Path(named)] if named else [MEMORY_FOLDER, Path(tempfile.gettempdir())]
    usable = [
        place.resolve() for place in candidates if place.is_dir() and os.access(place, os.W_OK | os.X_OK)
    ]
    if not usable:
        raise RequirementError(
            f"guests' scratch directories cannot be created in {' or '.join(map(str, candidates))}",
            hint=f"name a writable directory: {SCRATCH_VARIABLE}=DIR",
        )
    room = {place: shutil.disk_usage(place).free for place in usable}
    for place, free in room.items():
        if free >= each:
            # A tmpfs may be as large as all memory, so the memory in use counts, too.
            return place, max(min(free, _available_memory_bytes() or free) // each, 1)
    places = ", ".join(f"{place} has {format_bytes(free)}" for place, free in room.items())
    raise SpaceError(
        f"a guest needs {format_bytes(each)} for its memory and programs; {places}",
        hint=f"give guests less memory (--memory 256m), or name another directory: {SCRATCH_VARIABLE}=DIR",
    )


def _available_memory_bytes() -> int | None:
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
        return next(
            int(line.split()[1]) << 10 for line in text.splitlines() if line.startswith("MemAvailable:")
        )
    except (OSError, StopIteration, ValueError):
        return None


def remove_stale_folders(parent: Path) -> None:
    """Removes the scratch directories of this user's killed sessions."""
    for folder in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
                continue
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


def _copied(source: Path, copy: Path) -> None:
    try:
        size = source.stat().st_size
    except OSError as error:
        raise RequirementError(f"{source} cannot be read: {error.strerror}") from error
    if shutil.disk_usage(copy.parent).free < size + _SLACK:
        raise SpaceError(
            f"no space in {copy.parent} for {source.name} ({format_bytes(size)})", hint=_SPACE_HINT
        )
    try:
        shutil.copyfile(source, copy)
        copy.chmod(_READ_ONLY_PROGRAM)
    except OSError as error:
        copy.unlink(missing_ok=True)
        raise _no_room(error, copy) from error


_SPACE_HINT = f"free some space, or name another directory: {SCRATCH_VARIABLE}=DIR"


def _no_room(error: OSError, path: Path) -> SpaceError:
    return SpaceError(f"{path} cannot be written: {error.strerror}", hint=_SPACE_HINT)
