"""Profiles of devices and tables of machines share these: paths, texts, and the error for unknown names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from blklab.errors import ProfileError, UnknownNameError, did_you_mean
from blklab.named_files import read_text
from blklab.shipped import shipped_files

T = TypeVar("T")


def read_shipped(folder: str, read: Callable[[Path, str], T]) -> dict[str, T]:
    """The files that come with blklab in a folder, read, by name."""
    return {name: read(path, name) for name, path in shipped_files(folder, ".toml").items()}


def read_named(folder: str, name_or_path: str, read: Callable[[Path, str], T]) -> T | None:
    """Reads a file that comes with blklab, by its name, or a person's own, by its path.

    Returns:
        None if it is the name of neither.

    Raises:
        ProfileError: if the file cannot be read or has a mistake.
    """
    shipped = shipped_files(folder, ".toml")
    if name_or_path in shipped:
        return read(shipped[name_or_path], name_or_path)
    if name_or_path.endswith(".toml") or "/" in name_or_path:
        return read(Path(name_or_path), name_or_path)
    return None


def text_of(path: Path, source: str) -> str:
    """The file's text.

    Raises:
        ProfileError: if it cannot be read; the message begins with `source`.
    """
    try:
        return read_text(path)
    except OSError as error:
        raise ProfileError(f"{source}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ProfileError(f"{source}: is not UTF-8 text") from error


def unknown_name(
    kind: str, name: str, known: Sequence[str], *, more: Sequence[str] = (), where_more: str = ""
) -> UnknownNameError:
    """The error for a name that nothing has, with close ones.

    Args:
        kind: Of what has such names.
        name: The unknown one.
        known: Names, listed if none is close.
        more: Further names, too many to list.
        where_more: Text for them in the list.
    """
    others = ", ".join(filter(None, [*known, where_more]))
    return UnknownNameError(
        f"there is no {kind} {name!r}",
        hint=did_you_mean(name, [*known, *more]) or f"known are {others}, or a .toml file",
    )
