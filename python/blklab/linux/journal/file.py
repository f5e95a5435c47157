"""The journal file format: a chain of checksummed lines, so that damage is always noticed.

Each line is a checksum, a space and a JSON object. The checksum covers the line and the previous checksum,
so no line can change, vanish or move unnoticed. A line counts as written once fsync has returned.

A power cut can leave the last line torn; that is harmless, because the change it announces had not been made
yet. Within one boot nothing tears a line, so there it is damage, as is anything that no line begins with. The
header is never torn: the file gets its name once the header is on disk. What cannot be noticed is a file that
was cut exactly between two lines.
"""

from __future__ import annotations

import json
import os
import re
import stat
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blklab.errors import JournalError

FORMAT_VERSION = 1
_LONGEST_HEADER = 4096
_TORN = re.compile(rb"([0-9a-f]{0,8}|[0-9a-f]{8} (\{[\x20-\x7e]*)?)\0*")
"""The beginning of a line; a file system may keep its length and lose the bytes."""
Entry = dict[str, Any]


@dataclass(frozen=True)
class JournalContent:
    """The contents of a journal file."""

    entries: list[Entry]
    """The intact lines from the start of the file, the header first."""
    damage: str | None = None
    """The damage after them; None if there is none."""
    torn: str | None = None
    """Says that the last line is unfinished, as a power cut leaves it."""
    other_version: str | None = None
    """Says that another version of blklab has written the file, which this one cannot read."""


def encode_line(entry: Entry, previous_checksum: str) -> tuple[bytes, str]:
    """Encodes a line; also returns its checksum, which the next line needs."""
    text = json.dumps(entry, separators=(",", ":"), sort_keys=True)
    checksum = _checksum(previous_checksum, text.encode())
    return f"{checksum} {text}\n".encode(), checksum


def open_own_journal(path: Path, flags: int) -> int:
    """Opens a journal if it is a regular file of ours: it tells root what to write and what to remove.

    Args:
        path: The journal.
        flags: Of open(2): for reading, or for reading and writing.

    Raises:
        JournalError: if it is a link, no regular file, or another user's, or others may write to it.
        OSError: if it cannot be opened.
    """
    if not stat.S_ISREG(path.lstat().st_mode):  # opening a device may already do something
        raise _not_a_journal(path, "is no regular file")
    # Of a link that has just been put there, open(2) makes an error.
    descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        problem = "is no regular file"
    elif status.st_uid != os.geteuid() or status.st_mode & 0o022:
        problem = "belongs to another user, or other users may write to it"
    else:
        return descriptor
    os.close(descriptor)
    raise _not_a_journal(path, problem)


def _not_a_journal(path: Path, problem: str) -> JournalError:
    return JournalError(
        f"the journal {path} {problem}", hint="blklab does not obey it; see where it comes from and remove it"
    )


def read_journal_file(path: Path) -> JournalContent:
    """Reads the intact part of a journal file.

    Raises:
        JournalError: if the file cannot be read at all, or is none of ours.
    """
    try:
        with os.fdopen(open_own_journal(path, os.O_RDONLY), "rb") as file:
            data = file.read()
    except OSError as error:
        raise JournalError(f"journal {path} cannot be read: {error.strerror}") from error
    return decode(data)


def decode(data: bytes) -> JournalContent:
    """Decodes lines up to the first break in the chain of checksums."""
    if len(data) <= _LONGEST_HEADER and not data.strip(b"\0"):
        return JournalContent([])  # nothing was ever written: a file system may keep the length alone
    entries: list[Entry] = []
    checksum = ""
    *lines, rest = data.split(b"\n")
    for number, line in enumerate(lines, start=1):
        entry = _decode_line(line, checksum)
        if entry is None:
            is_last = number == len(lines) and not rest
            if entries and is_last and not line.strip(b"\0"):
                return _checked_version(entries, torn=f"line {number} was lost")
            return _checked_version(entries, damage=f"line {number} is damaged")
        checksum = line[:8].decode()
        entries.append(entry)
    if not rest:
        return _checked_version(entries)
    if entries and _TORN.fullmatch(rest):
        return _checked_version(entries, torn=f"line {len(lines) + 1} is unfinished")
    return _checked_version(entries, damage=f"line {len(lines) + 1} is damaged")


def _checked_version(
    entries: list[Entry], *, damage: str | None = None, torn: str | None = None
) -> JournalContent:
    if entries and entries[0].get("version") != FORMAT_VERSION:
        other = f"it has format {entries[0].get('version')}, not {FORMAT_VERSION}"
        return JournalContent([], other_version=other)
    return JournalContent(entries, damage, torn)


def _decode_line(line: bytes, previous_checksum: str) -> Entry | None:
    if len(line) < 10 or line[8:9] != b" ":
        return None
    text = line[9:]
    if line[:8].decode("ascii", errors="replace") != _checksum(previous_checksum, text):
        return None
    try:
        entry = json.loads(text)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None


def _checksum(previous: str, text: bytes) -> str:
    return f"{zlib.crc32(text, zlib.crc32(previous.encode())):08x}"


def sync_directory(folder: Path) -> None:
    """Flushes a directory, so that the names in it are as durable as the files."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
