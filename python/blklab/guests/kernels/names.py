"""Names of guest kernels in the cache."""

from __future__ import annotations

import re

from blklab.errors import UnknownNameError, UsageError
from blklab.guests.kernels.cache import kernel_cache

DEFAULT_NAME = "stock"
"""Name of the kernel that is meant where none is named: the default source without patches."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def check_name(name: str) -> str:
    """Gives the name back if it may be one.

    Raises:
        UsageError: otherwise.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot be the name of a kernel",
            hint="use up to 64 letters, digits, dots, dashes and underscores, a letter or digit first",
        )
    return name


def kernel_names() -> list[str]:
    """Names of all kernels in alphabetical order."""
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
