"""A limit of the address space (``ulimit -v``) is checked before anything runs into it.

Libraries for linear algebra start a thread for each processor. Under too low a limit they try again for ever,
or fail with whatever comes first.
"""

from __future__ import annotations

import os
import sys

from blklab.errors import RequirementError

_MIB = 1 << 20
_OF_ANY_COMMAND = 256 * _MIB
_OF_CALCULATIONS = 512 * _MIB
_OF_A_PROCESSOR = 96 * _MIB
_MOST_PROCESSORS = 64
"""OpenBLAS starts no more threads."""
_WITHOUT_CALCULATIONS = {"completion", "doctor", "help", "record", "restore", "targets", "workloads"}


def require_address_space(command: str) -> None:
    """Refuses a limit that a command cannot work under.

    Args:
        command: Name of the subcommand.

    Raises:
        RequirementError: if the limit of this process is too low.
    """
    if sys.platform == "win32":
        return
    import resource  # noqa: PLC0415 - Windows has none

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    needed = _needed_bytes(command)
    if limit == resource.RLIM_INFINITY or limit >= needed:
        return
    raise RequirementError(
        f"blklab {command} needs about {needed // _MIB} MiB of address space, and its limit is"
        f" {limit // _MIB} MiB",
        hint=f"ulimit -v {needed // 1024}, or ulimit -v unlimited",
    )


def _needed_bytes(command: str) -> int:
    if command in _WITHOUT_CALCULATIONS:
        return _OF_ANY_COMMAND
    return _OF_CALCULATIONS + _OF_A_PROCESSOR * min(os.cpu_count() or 1, _MOST_PROCESSORS)
