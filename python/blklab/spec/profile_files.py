"""Profiles of devices and tables of machines share these: paths, texts, and the error for unknown names."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

from blklab.errors import ProfileError, UnknownNameError


def is_path(name_or_path: str) -> bool:
    """Whether a person has named a file rather than something that ships."""
    return name_or_path.endswith(".toml") or "/" in name_or_path


def text_of(path: Path, source: str) -> str:
    """The file's text.

    Raises:
        ProfileError: if it cannot be read; the message begins with `source`.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ProfileError(f"{source}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ProfileError(f"{source}: is not UTF-8 text") from error


def unknown_name(kind: str, name: str, known: Sequence[str]) -> UnknownNameError:
    """The error for a name that nothing has, with close ones."""
    close = difflib.get_close_matches(name, known, n=2)
    return UnknownNameError(
        f"there is no {kind} {name!r}",
        hint=f"did you mean {' or '.join(close)}?"
        if close
        else f"known are {', '.join(known)}, or a .toml file",
    )
