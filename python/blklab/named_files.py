"""Files that a person names: read within limits, and written whole or not at all.

Reading refuses devices, which may have no end, and files beyond a size that no person writes. Writing goes to
a new file beside the destination, which then takes its name: a failure leaves what was there, and a symbolic
or hard link that somebody else put into the folder leads nowhere. No folders are made on the way: as root, a
mistyped path would make them anywhere.

Everything here raises `OSError` with a reason in `strerror`, as the system does.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

MOST_TEXT_BYTES = 16 << 20
"""The largest job file, description, profile or patch."""
MOST_RESULT_BYTES = 256 << 20
"""The largest file of another program's results."""
MOST_TIMELINE_BYTES = 4 << 30
"""The largest timeline."""

_BLOCK_BYTES = 1 << 20
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_LINK = "is a symbolic link, which is not followed: name the file itself"


def is_file(path: Path) -> bool:
    """Whether there is such a file; False for what cannot be a path, such as a name of 300 letters."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def is_folder(path: Path) -> bool:
    """The same of a folder."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def read_bytes(path: Path, most_bytes: int = MOST_TEXT_BYTES) -> bytes:
    """The content of a file, or of a pipe until its writers have closed it.

    Raises:
        OSError: if it cannot be read, is a device, or has more than `most_bytes`.
    """
    _refuse_device(path.stat().st_mode, path)
    with path.open("rb") as file:
        _refuse_device(os.fstat(file.fileno()).st_mode, path)
        content = bytearray()
        # `read(n)` takes n bytes of memory at once, however short the file is.
        while block := file.read(min(_BLOCK_BYTES, most_bytes + 1 - len(content))):
            content += block
    if len(content) > most_bytes:
        raise OSError(errno.EFBIG, f"has more than {most_bytes >> 20} MiB", str(path))
    return bytes(content)


def read_text(path: Path, most_bytes: int = MOST_TEXT_BYTES) -> str:
    """The same as text, with line feeds alone at the ends of lines.

    Raises:
        OSError: as `read_bytes`.
        UnicodeDecodeError: if it is not UTF-8.
    """
    return read_bytes(path, most_bytes).decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")


def _refuse_device(mode: int, path: Path) -> None:
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        raise OSError(errno.EINVAL, "is a device, not a file", str(path))


@contextlib.contextmanager
def written_whole(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, which takes its name at the end; after an exception nothing has changed.

    A pipe or a terminal (``/dev/stdout``, ``>(command)``) is written to as it is.

    Raises:
        OSError: if the folder is missing or cannot be written to, or the path is a link, a folder or a disk.
    """
    if _is_stream(path):
        with _opened_in_place(path) as file:
            yield file
        return
    former = _replaceable(path)
    draft = path.parent / f".blklab-{secrets.token_hex(6)}"
    try:
        descriptor = os.open(draft, _NEW, 0o666)
    except PermissionError:
        # A file may be writable in a folder that is not.
        if former is None:
            raise
        with _opened_in_place(path) as file:
            yield file
        return
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            if former is not None:
                os.fchmod(file.fileno(), stat.S_IMODE(former.st_mode))
                with contextlib.suppress(PermissionError):
                    os.fchown(file.fileno(), former.st_uid, former.st_gid)
        _rename(draft, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            draft.unlink()


@contextlib.contextmanager
def written_as_it_comes(path: Path) -> Iterator[BinaryIO]:
    """A file that others may read while it grows.

    Raises:
        OSError: as `written_whole`.
    """
    if not _is_stream(path):
        _replaceable(path)
    with _opened_in_place(path) as file:
        yield file


@contextlib.contextmanager
def appended(path: Path) -> Iterator[BinaryIO]:
    """A file to add to; it is made if it is missing.

    Raises:
        OSError: as `written_whole`.
    """
    _replaceable(path)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    with os.fdopen(os.open(path, flags, 0o666), "ab") as file:
        yield file


def check_writable(path: Path) -> None:
    """Checks, before long work, that its result can be written; leaves no trace.

    Raises:
        OSError: as `written_whole`.
    """
    if _is_stream(path):
        return  # the reader of a pipe would take a trial for the end
    former = _replaceable(path)
    draft = path.parent / f".blklab-{secrets.token_hex(6)}"
    try:
        os.close(os.open(draft, _NEW, 0o666))
    except PermissionError:
        if former is None or not os.access(path, os.W_OK):
            raise
    else:
        draft.unlink()


def _is_stream(path: Path) -> bool:
    """Whether it leads to a pipe, a terminal or the like."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)


def _replaceable(path: Path) -> os.stat_result | None:
    """The file that is there, which may be replaced; None if there is none."""
    folder = path.parent
    if not folder.is_dir():
        raise OSError(errno.ENOENT, f"the folder {folder} does not exist", str(path))
    try:
        former = path.lstat()
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(former.st_mode):
        raise OSError(errno.ELOOP, _LINK, str(path))
    if stat.S_ISDIR(former.st_mode):
        raise OSError(errno.EISDIR, "is a folder", str(path))
    _refuse_device(former.st_mode, path)
    return former


@contextlib.contextmanager
def _opened_in_place(path: Path) -> Iterator[BinaryIO]:
    flags = os.O_WRONLY | os.O_CLOEXEC | os.O_NOCTTY
    flags |= 0 if _is_stream(path) else os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    with os.fdopen(os.open(path, flags, 0o666), "wb") as file:
        yield file


def _rename(draft: Path, path: Path) -> None:
    try:
        draft.replace(path)
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        # A single file mounted into a container cannot be replaced, only written to.
        with draft.open("rb") as source, _opened_in_place(path) as file:
            while part := source.read(1 << 20):
                file.write(part)
