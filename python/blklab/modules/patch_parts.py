"""The parts of a patch, one for each file that it changes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace

from blklab.guests.kernels.patches import Patch

_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_FILE = re.compile(rb"(?:---|\+\+\+) [^/\s]+/([^\t\n]+)")


@dataclass
class _Part:
    """The lines of one file's changes, and any text before them."""

    lines: list[bytes] = field(default_factory=list)
    file: str = ""
    """By path in the source; empty as long as it is not named."""
    has_names: bool = False
    """Whether its ``---`` line has come."""


def without(patch: Patch, files: Collection[str]) -> Patch:
    """A patch without its changes to some files."""
    if not set(files) & set(patch.files):
        return patch
    kept = [part for part in _parts(patch.content) if part.file not in files]
    return replace(
        patch,
        content=b"".join(line for part in kept for line in part.lines),
        files=tuple(file for file in patch.files if file not in files),
        created=tuple(file for file in patch.created if file not in files),
    )


def _parts(content: bytes) -> Iterator[_Part]:
    part = _Part()
    old = new = 0
    for line in content.splitlines(keepends=True):
        if old > 0 or new > 0:
            # Within a hunk a line may look like the start of a file: a removed "-- x" is "--- x".
            old -= line[:1] not in (b"+", b"\\")
            new -= line[:1] not in (b"-", b"\\")
        elif (hunk := _HUNK.match(line)) is not None:
            old, new = (int(number or 1) for number in hunk.groups())
        else:
            names = line.startswith(b"--- ")
            if line.startswith(b"diff --git ") or (names and part.has_names):
                yield part
                part = _Part()
            part.has_names |= names
            if part.has_names and (named := _FILE.match(line)) is not None:
                part.file = named[1].strip().decode("utf-8", "surrogateescape")
        part.lines.append(line)
    yield part
