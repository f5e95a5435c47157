"""Digests of the files of a person's tree, without reading again what has not changed.

A file counts as unchanged if size, modification time and inode are those of last time, unless it was modified
so shortly before the digests were saved that a later change might bear the same time (git's index has the
same rule).
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from blklab.errors import KernelSourceError, reason_of
from blklab.guests.kernels.cache import kernel_cache, make_folder
from blklab.guests.kernels.source_tree import files_of

_RACY_NS = 2_000_000_000
_FORMAT = 1


def digest_tree(tree: Path) -> dict[str, str]:
    """SHA-256 of every file of a tree that is taken along, by its path in the tree.

    A symbolic link counts by what it points to, and the right to execute counts too.

    Raises:
        KernelSourceError: if a file cannot be read.
    """
    remembered_in = kernel_cache() / "digests" / f"{hashlib.sha256(str(tree).encode()).hexdigest()[:32]}.json"
    saved_ns, remembered = _load(remembered_in)
    now_ns = time.time_ns()
    entries: dict[str, list[int | str]] = {}
    try:
        for path, status in files_of(tree):
            known = remembered.get(path)
            marks: list[int | str] = [status.st_size, status.st_mtime_ns, status.st_ino, status.st_mode]
            if known is not None and known[:4] == marks and status.st_mtime_ns < saved_ns - _RACY_NS:
                entries[path] = known
            else:
                entries[path] = [*marks, _digest(tree / path, status)]
    except OSError as error:
        raise KernelSourceError(
            f"the tree {tree} cannot be read: {error.filename}: {reason_of(error)}"
        ) from error
    if entries != remembered:
        _save(remembered_in, now_ns, entries)
    return {path: str(entries[path][4]) for path in sorted(entries)}


def tree_digest(digests: Mapping[str, str]) -> str:
    """One digest for a whole tree."""
    total = hashlib.sha256()
    for path in sorted(digests):
        total.update(f"{path}\0{digests[path]}\n".encode("utf-8", "surrogateescape"))
    return total.hexdigest()


def digest_file(path: Path) -> str:
    """SHA-256 of a file.

    Raises:
        OSError: if it cannot be read.
    """
    total = hashlib.sha256()
    with path.open("rb") as content:
        while block := content.read(1 << 20):
            total.update(block)
    return total.hexdigest()


def _digest(path: Path, status: os.stat_result) -> str:
    if stat.S_ISLNK(status.st_mode):
        return hashlib.sha256(b"link\0" + os.fsencode(path.readlink())).hexdigest()
    content = hashlib.sha256(path.read_bytes())
    if status.st_mode & stat.S_IXUSR:
        content.update(b"\0executable")
    return content.hexdigest()


def _load(path: Path) -> tuple[int, dict[str, list[int | str]]]:
    """What was remembered; nothing if that is missing or unreadable, since it can be found out again."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        content = json.loads(path.read_bytes())
        if content["format"] == _FORMAT:
            return int(content["saved_ns"]), dict(content["files"])
    return 0, {}


def _save(path: Path, saved_ns: int, entries: Mapping[str, list[int | str]]) -> None:
    with suppress(OSError):  # it only saves time
        make_folder(path.parent)
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        temporary.write_text(json.dumps({"format": _FORMAT, "saved_ns": saved_ns, "files": entries}))
        temporary.replace(path)
