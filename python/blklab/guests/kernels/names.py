"""Names of guest kernels in the cache."""

from __future__ import annotations

import re

from blklab.errors import UnknownNameError, UsageError
from blklab.guests.kernels.cache import kernel_cache

DEFAULT_NAME = "stock"
"""Name of the default kernel: the default source without patches."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def check_name(name: str) -> str:
    """Returns the name if it is valid.

    Raises:
        UsageError: if it is not.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is not a valid name for a kernel",
            hint="use up to 64 letters, digits, dots, dashes and underscores; begin with a letter or digit",
        )
    return name


def kernel_names() -> list[str]:
    """The names of all kernels in the cache, in alphabetical order."""
    folder = kernel_cache() / "names"
    return sorted(link.name for link in folder.glob("*") if link.is_symlink() and _NAME.fullmatch(link.name))


def unknown_kernel(name: str) -> UnknownNameError:
    """The error for a name that no kernel in the cache has."""
    known = kernel_names()
    which = f"; there are {', '.join(known)}" if known else ""
    return UnknownNameError(
        f"there is no kernel {name}{which}",
        hint=f"`blklab kernel build {name}` builds it (minutes the first time)",
    )
