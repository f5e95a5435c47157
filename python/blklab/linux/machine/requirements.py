"""Requires Linux, or root."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

from blklab.errors import NotRootError, RequirementError

_PATH_OF_SUDO = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""The usual ``secure_path``."""


def require_linux(what: str) -> None:
    """Makes sure that this is Linux.

    Raises:
        RequirementError: if it is not.
    """
    if sys.platform != "linux":
        raise RequirementError(
            f"{what} needs Linux; this is {sys.platform}", hint="simulated devices work here: sim:ssd-sata"
        )


def require_root(what: str, *, instead: str = "") -> None:
    """Makes sure that we are root on Linux.

    Args:
        what: The thing that needs root, for the message.
        instead: Advice for those who cannot be root.

    Raises:
        RequirementError: if this is not Linux.
        NotRootError: if we are not root.
    """
    require_linux(what)
    if os.geteuid() != 0:
        raise NotRootError(f"{what} needs root", hint=", or ".join(filter(None, (_sudo(), instead))))


def _sudo() -> str:
    """Advises sudo, with the program's path where sudo would not find it: it does not use the user's PATH."""
    program = Path(sys.argv[0])
    if program.name != "blklab" or not program.is_file() or shutil.which("blklab", path=_PATH_OF_SUDO):
        return "run with sudo"
    return f"run with sudo {shlex.quote(str(program.absolute()))}"
