"""Requires Linux, or root."""

from __future__ import annotations

import os
import sys

from blklab.errors import NotRootError, RequirementError


def require_linux(what: str) -> None:
    """Makes sure that this is Linux.

    Raises:
        RequirementError: if it is not.
    """
    if sys.platform != "linux":
        raise RequirementError(
            f"{what} needs Linux; this is {sys.platform}", hint="simulated devices work here: sim:ssd-sata"
        )


def require_root(what: str) -> None:
    """Makes sure that we are root on Linux.

    Raises:
        RequirementError: if this is not Linux.
        NotRootError: if we are not root.
    """
    require_linux(what)
    if os.geteuid() != 0:
        raise NotRootError(f"{what} needs root", hint="run with sudo")
