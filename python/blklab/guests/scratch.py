"""Where guests live: a folder in memory that goes away with the session, whatever ends it.

::

    /dev/shm/blklab-guests-*/            one a session, mode 700
        lock                             held (flock) while the session lives
        shared/                          kernels and programs, copied once
        run-0/                           one a guest: its whole file system; see `GuestFolder`

A guest's memory is an unnamed file in its folder, gone with its process. Folders whose lock nobody holds
belonged to sessions that were killed; the next one removes them.
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
"""Names a folder for scratch folders in place of the usual ones."""

MEMORY_FOLDER = Path("/dev/shm")  # noqa: S108 - folders in it are new, and ours alone (mode 700)
_PREFIX = "blklab-guests-"
_LOCK = "lock"
_SHARED = "shared"
_PROGRAMS_BYTES = 48 << 20
"""Kernel, guest program, fio and mkfs with their libraries, and a log, with a reserve."""
MOUNT_POINTS = ("dev", "proc", "sys", "tmp", "run", "mnt")
"""Folders in which the guest mounts file systems."""
_SLACK = 16 << 20
_READ_ONLY_PROGRAM = 0o555


@dataclass(frozen=True)
class GuestFolder:
    """The file system of one guest: all that it sees of this machine."""

    path: Path

    @property
    def log(self) -> Path:
        """What its kernel and programs say."""
        return self.path / "log"


class SessionFolder:
    """The folder of one session; to be removed by `remove`."""

    def __init__(self, place: Path) -> None:
        with shielded():
            self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
            self._lock = os.open(self.path / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        (self.path / _SHARED).mkdir()
        self._number = 0
        self._mutex = threading.Lock()

    def share(self, source: Path, name: str) -> Path:
        """Copies a program into the session, once: it stays whole even if the original goes away.

        Raises:
            SpaceError: if there is no room.
            RequirementError: if it cannot be read.
        """
        copy = self.path / _SHARED / name
        with self._mutex:
            if not copy.exists():
                copy.parent.mkdir(parents=True, exist_ok=True)
                _copied(source, copy)
        return copy

    def new_run(self, files: Mapping[str, Path], texts: Mapping[str, str]) -> GuestFolder:
        """Makes the folder of a guest.

        Args:
            files: Shared files by their path in the guest.
            texts: Contents of further files.

        Raises:
            SpaceError: if there is no room.
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

    def remove_run(self, folder: GuestFolder) -> None:
        """Removes the folder of a guest that has ended: its memory and files take room."""
        shutil.rmtree(folder.path, ignore_errors=True)

    def remove(self) -> None:
        """Removes everything; guests must have ended."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def choose_scratch(needed_bytes: int) -> tuple[Path, int]:
    """Where scratch folders go, and how many guests find room there.

    Args:
        needed_bytes: Memory of one guest.

    Raises:
        SpaceError: if no guest finds room.
        RequirementError: if no folder can be written.
    """
    each = needed_bytes + _PROGRAMS_BYTES
    named = os.environ.get(SCRATCH_VARIABLE)
    candidates = [Path(named)] if named else [MEMORY_FOLDER, Path(tempfile.gettempdir())]
    usable = [
        place.resolve() for place in candidates if place.is_dir() and os.access(place, os.W_OK | os.X_OK)
    ]
    if not usable:
        raise RequirementError(
            f"scratch folders of guests cannot be made in {' or '.join(map(str, candidates))}",
            hint=f"name a folder that can be written: {SCRATCH_VARIABLE}=DIR",
        )
    room = {place: shutil.disk_usage(place).free for place in usable}
    for place, free in room.items():
        if free >= each:
            # A folder in memory may be as large as all of it: what is in use already counts, too.
            return place, max(min(free, _available_memory_bytes() or free) // each, 1)
    places = ", ".join(f"{place} has {format_bytes(free)}" for place, free in room.items())
    raise SpaceError(
        f"a guest needs {format_bytes(each)} for its memory and programs; {places}",
        hint=f"give guests less memory (--memory 256m), or name another folder: {SCRATCH_VARIABLE}=DIR",
    )


def _available_memory_bytes() -> int | None:
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
        return next(
            int(line.split()[1]) << 10 for line in text.splitlines() if line.startswith("MemAvailable:")
        )
    except (OSError, StopIteration, ValueError):
        return None


def remove_stale_folders(place: Path) -> None:
    """Removes what sessions of this user left behind that were killed."""
    for folder in place.glob(f"{_PREFIX}*"):
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
            f"no room in {copy.parent} for {source.name} ({format_bytes(size)})", hint=_ROOM_HINT
        )
    try:
        shutil.copyfile(source, copy)
        copy.chmod(_READ_ONLY_PROGRAM)
    except OSError as error:
        copy.unlink(missing_ok=True)
        raise _no_room(error, copy) from error


_ROOM_HINT = f"make room, or name another folder: {SCRATCH_VARIABLE}=DIR"


def _no_room(error: OSError, path: Path) -> SpaceError:
    return SpaceError(f"{path} cannot be written: {error.strerror}", hint=_ROOM_HINT)
