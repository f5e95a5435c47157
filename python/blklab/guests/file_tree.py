"""Trees of files for guests: collected from this machine, written as one archive.

The archive has the format of an initial RAM file system (cpio "newc",
Documentation/driver-api/early-userspace/buffer-format.rst, Linux 6.1). Entries are sorted by name, belong to
root, and keep their times. The guest writes them to its disk in this order.
"""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from blklab.errors import RequirementError, SpaceError
from blklab.guests.executables import needs_of, read_executable
from blklab.quantities.units import format_bytes

_FOLDER_MODE = 0o755
_LARGEST_BYTES = (1 << 32) - 1
"""Of one file in an archive."""
_LAST_TIME_S = (1 << 32) - 1
_BLOCK_BYTES = 4096
_NOT_COPIED = "a folder may hold only files, folders and symbolic links"


@dataclass(frozen=True)
class _Entry:
    mode: int
    modified_s: int = 0
    source: Path | None = None
    """The file whose contents it has."""
    contents: bytes = b""
    """A link's target, or what a file without a source holds."""


@dataclass
class FileTree:
    """Files by their path in the guest, without the leading slash."""

    _entries: dict[str, _Entry] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """Room that its files take on a disk."""
        return sum(_rounded(_size(entry)) for entry in self._entries.values())

    def add_folder(self, name: str, mode: int = _FOLDER_MODE) -> None:
        """Adds an empty folder, and those above it."""
        parts = PurePosixPath(name).parts
        for length in range(1, len(parts)):
            self._entries.setdefault("/".join(parts[:length]), _Entry(stat.S_IFDIR | _FOLDER_MODE))
        self._entries.setdefault("/".join(parts), _Entry(stat.S_IFDIR | mode))

    def add_text(self, name: str, text: str) -> None:
        """Adds a file."""
        self._put(name, _Entry(stat.S_IFREG | 0o644, contents=text.encode()))

    def add_file(self, path: Path, name: str | None = None) -> None:
        """Adds a file with all that it needs in order to run.

        Args:
            path: The file; of a link, what it leads to.
            name: Its path in the guest; None for the same as here.

        Raises:
            MissingToolError: if its interpreter or a library is missing.
            RequirementError: if it cannot be read.
        """
        self._put(_name_of(path) if name is None else name, _entry_of(path.resolve()))
        self.add_needs_of(path)

    def add_needs_of(self, path: Path) -> None:
        """Adds what a file needs in order to run, but not the file.

        Raises:
            MissingToolError: if its interpreter or a library is missing.
            RequirementError: if it cannot be read.
        """
        for need in needs_of(path):
            name = _name_of(need)
            if name not in self._entries:
                self._put(name, _entry_of(need.resolve()))

    def add_whole_folder(self, folder: Path, name: str | None = None, *, with_needs: bool = True) -> None:
        """Adds a folder with all that is in it; links stay links.

        Args:
            folder: Of this machine.
            name: Its path in the guest; None for the same as here.
            with_needs: Add the libraries of programs and libraries in it, too; scripts may stay without their
                interpreters, which examples in folders of libraries often lack.

        Raises:
            MissingToolError: if an interpreter or a library is missing.
            RequirementError: if a file cannot be read, or is no file, folder or link.
        """
        top = _name_of(folder) if name is None else name
        self.add_folder(top, stat.S_IMODE(folder.stat().st_mode))
        for above, folders, files in os.walk(folder, onerror=_refuse):
            inside = os.path.relpath(above, folder)
            for each in [*folders, *files]:
                path = Path(above) / each
                entry = _entry_of(path)
                self._put(os.path.normpath(f"{top}/{inside}/{each}"), entry)
                if with_needs and entry.source is not None and _has_libraries(path):
                    self.add_needs_of(path)

    def write(self, path: Path) -> str:
        """Writes the archive.

        Returns:
            A digest of names, modes and contents. Times are left out: those of new files differ each time.

        Raises:
            SpaceError: if a file is too large, or there is no room.
            RequirementError: if a file cannot be read.
        """
        digest = hashlib.sha256()
        try:
            with path.open("wb") as archive:
                for number, (name, entry) in enumerate(sorted(self._entries.items()), 1):
                    digest.update(_write_entry(archive, number, name, entry))
                _write_header(archive, 0, "TRAILER!!!", _Entry(0), 0)
        except OSError as error:
            raise SpaceError(f"{path} cannot be written: {error.strerror}") from error
        return digest.hexdigest()

    def _put(self, name: str, entry: _Entry) -> None:
        above = str(PurePosixPath(name).parent)
        if above != ".":
            self.add_folder(above)
        self._entries[name] = entry


def _name_of(path: Path) -> str:
    return str(path.absolute()).lstrip("/")


def _entry_of(path: Path) -> _Entry:
    """The entry of a file, folder or link of this machine.

    Raises:
        RequirementError: if it is something else, or cannot be read.
    """
    try:
        str(path).encode()
        facts = path.lstat()
        kind = stat.S_IFMT(facts.st_mode)
        modified_s = max(0, min(int(facts.st_mtime), _LAST_TIME_S))
        if kind == stat.S_IFLNK:
            return _Entry(facts.st_mode, modified_s, contents=str(path.readlink()).encode())
    except OSError as error:
        raise RequirementError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeEncodeError as error:
        raise RequirementError(f"the name {str(path)!r} is not UTF-8", hint="rename it") from error
    if kind == stat.S_IFREG:
        if facts.st_size > _LARGEST_BYTES:
            raise SpaceError(
                f"{path} is larger than {format_bytes(_LARGEST_BYTES + 1)}, too large for a guest"
            )
        return _Entry(facts.st_mode, modified_s, source=path)
    if kind == stat.S_IFDIR:
        return _Entry(facts.st_mode, modified_s)
    raise RequirementError(f"{path} cannot be copied into a guest", hint=_NOT_COPIED)


def _has_libraries(path: Path) -> bool:
    if not (path.stat().st_mode & stat.S_IXUSR or ".so" in path.name):
        return False
    executable = read_executable(path)
    return executable is not None and executable.kind == "elf"


def _refuse(error: OSError) -> None:
    raise RequirementError(f"{error.filename} cannot be read: {error.strerror}") from error


def _size(entry: _Entry) -> int:
    return len(entry.contents) if entry.source is None else entry.source.stat().st_size


def _rounded(size_bytes: int) -> int:
    return -(-size_bytes // _BLOCK_BYTES) * _BLOCK_BYTES


def _write_entry(archive: BinaryIO, number: int, name: str, entry: _Entry) -> bytes:
    """Writes one entry; returns a digest of it."""
    digest = hashlib.sha256(f"{name}\0{entry.mode:o}\0".encode())
    if entry.source is None:
        _write_header(archive, number, name, entry, len(entry.contents))
        _write_padded(archive, entry.contents)
        digest.update(entry.contents)
        return digest.digest()
    try:
        contents = entry.source.read_bytes()
    except OSError as error:
        raise RequirementError(f"{entry.source} cannot be read: {error.strerror}") from error
    _write_header(archive, number, name, entry, len(contents))
    _write_padded(archive, contents)
    digest.update(contents)
    return digest.digest()


def _write_header(archive: BinaryIO, number: int, name: str, entry: _Entry, size_bytes: int) -> None:
    written = name.encode() + b"\0"
    # Inode, mode, owner, group, links, time, bytes, four numbers of devices, bytes of the name, check sum.
    fields = (number, entry.mode, 0, 0, 1, entry.modified_s, size_bytes, 0, 0, 0, 0, len(written), 0)
    header = b"070701" + "".join(f"{value:08x}" for value in fields).encode()
    _write_padded(archive, header + written)


def _write_padded(archive: BinaryIO, data: bytes) -> None:
    archive.write(data + bytes(-len(data) % 4))
