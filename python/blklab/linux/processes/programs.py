"""Finding and running the system's own programs, many of which are outside a user's PATH."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess

from blklab.errors import MissingToolError, RequirementError

_SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")
"""Debian keeps hdparm, mkfs and umount there; a user's PATH may lack them."""


def find_program(name: str) -> str | None:
    """The path of a program, in PATH or in the system's folders; None if it is not installed."""
    return shutil.which(name) or shutil.which(name, path=os.pathsep.join(_SYSTEM_FOLDERS))


def run_program(command: list[str], *, package: str) -> None:
    """Runs a program to its end; it is killed if blklab dies first.

    Args:
        command: Program and arguments.
        package: Debian's package that holds the program, for the hint.

    Raises:
        MissingToolError: if the program or setpriv is missing.
        RequirementError: if it fails, with its standard error.
    """
    path = find_program(command[0])
    if path is None:
        raise MissingToolError(f"{command[0]} is missing", hint=f"apt install {package}")
    # It must not outlive us: recovery would undo nothing yet, and the program's later changes would stay.
    bound = ["setpriv", "--pdeathsig", "KILL", "--", path, *command[1:]]
    try:
        subprocess.run(bound, check=True, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise MissingToolError("setpriv is missing", hint="apt install util-linux") from error
    except subprocess.CalledProcessError as error:
        raise RequirementError(f"{shlex.join(command)}: {error.stderr.strip()}") from error
