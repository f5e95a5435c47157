"""Errors of the system that reach the top: a path that was given, or the current directory, is not usable.

Code that opens a file says itself what is wrong with it. This is for the places that only look, such as
``Path.is_file``: an error about a path of the command line is the request's, any other a defect.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence

from blklab.errors import BlklabError, RequirementError, SpaceError, UsageError, reason_of

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_OF_A_PATH = {
    errno.EACCES,
    errno.EEXIST,
    errno.EINVAL,
    errno.EIO,
    errno.EISDIR,
    errno.ELOOP,
    errno.ENAMETOOLONG,
    errno.ENODEV,
    errno.ENOENT,
    errno.ENOTDIR,
    errno.ENXIO,
    errno.EPERM,
    errno.EROFS,
    errno.ESTALE,
}


def is_full(error: Exception) -> bool:
    """Whether there was no room for what was written."""
    return isinstance(error, OSError) and error.errno in _FULL


def explained(error: Exception, arguments: Sequence[str]) -> BlklabError | None:
    """The typed error for an error of the system; None for a defect.

    Args:
        error: What was raised.
        arguments: Of the command line.
    """
    if not isinstance(error, OSError):
        return None
    if is_full(error):
        where = error.filename or "standard output or a temporary file"
        return SpaceError(f"{_text(where)}: cannot be written: {error.strerror}")
    if error.errno in (errno.ENOENT, errno.ESTALE) and not _has_current_directory():
        return RequirementError("the current directory does not exist any more", hint="change to another one")
    path = None if error.filename is None else _text(error.filename)
    if path and error.errno in _OF_A_PATH and any(_is_about(path, argument) for argument in arguments):
        return UsageError(f"{path}: {reason_of(error)}")
    return None


def _has_current_directory() -> bool:
    try:
        os.getcwd()  # noqa: PTH109 - what is asked is the system call
    except OSError:
        return False
    return True


def _is_about(path: str, argument: str) -> bool:
    """Whether an argument names the path, alone or as ``dir=PATH``, or a folder above it."""
    values = {argument, argument.partition("=")[2], argument.rpartition("=")[2], argument.partition(":")[2]}
    return any(value and (path == value or path.startswith(f"{value.rstrip('/')}/")) for value in values)


def _text(name: object) -> str:
    return os.fsdecode(name) if isinstance(name, str | bytes) else str(name)
