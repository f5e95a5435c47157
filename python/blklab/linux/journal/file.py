"""The journal file format: a chain of checksummed lines, so that damage is always noticed.

Each line is a checksum, a space and a JSON object. The checksum covers the line and the previous checksum,
so no line can change, vanish or move unnoticed. A line counts as written once fsync has returned. A power cut
can leave the last line torn; that is harmless, because the change it announces had not been made yet.
"""

from __future__ import annotations

import json
import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blklab.errors import JournalError

FORMAT_VERSION = 1
Entry = dict[str, Any]


@dataclass(frozen=True)
class JournalContent:
    """The contents of a journal file."""

    entries: list[Entry]
    """The intact lines from the start of the file, the header first."""
    damage: str | None
    """The damage after them; None if the file is sound. A torn last line is not damage."""


def encode_line(entry: Entry, previous_checksum: str) -> tuple[bytes, str]:
    """Encodes a line; also returns its checksum, which the next line needs."""
    text = json.dumps(entry, separators=(",", ":"), sort_keys=True)
    checksum = _checksum(previous_checksum, text.encode())
    return f"{checksum} {text}\n".encode(), checksum


def read_journal_file(path: Path) -> JournalContent:
    """Reads the intact part of a journal file.

    Raises:
        JournalError: if the file cannot be read at all.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise JournalError(f"journal {path} cannot be read: {error.strerror}") from error
    return decode(data)


def decode(data: bytes) -> JournalContent:
    """Decodes lines up to the first break in the chain of checksums."""
    entries: list[Entry] = []
    checksum = ""
    *lines, torn = data.split(b"\n")
    for number, line in enumerate(lines, start=1):
        entry = _decode_line(line, checksum)
        if entry is None:
            # Only the last line can be torn. A file system may keep its length and lose its bytes.
            if number == len(lines) and not torn and not line.strip(b"\0"):
                break
            return JournalContent(entries, f"line {number} is damaged")
        checksum = line[:8].decode()
        entries.append(entry)
    if entries and entries[0].get("version") != FORMAT_VERSION:
        return JournalContent([], f"it has format {entries[0].get('version')}, not {FORMAT_VERSION}")
    return JournalContent(entries, None)


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
