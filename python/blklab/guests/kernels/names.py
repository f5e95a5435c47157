"""Names of guest kernels in the cache."""

from __future__ import annotations

import re

from blklab.errors import UnknownNameError, UsageError
from blklab.guests.kernels.cache import kernel_cache
from blklab.guests.kernels.patches import shipped_patches

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
        hint=f"`{_building(name)}` builds it (minutes the first time)",
    )


def _building(name: str) -> str:
    """The command that builds a kernel; without a patch it would be the stock one under another name."""
    if name == DEFAULT_NAME:
        return "blklab kernel build"
    patch = name if name in shipped_patches() else "FILE"
    return f"blklab kernel build {name} --patch {patch}"
