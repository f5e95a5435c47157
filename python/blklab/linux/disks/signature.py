"""Signatures of file systems that blklab made on devices."""

from __future__ import annotations

import subprocess
from pathlib import Path

from blklab.errors import MissingToolError
from blklab.linux.processes.programs import find_program, run_program


def erase_signature(device: Path, *, uuid: str) -> bool:
    """Erases the signature of a file system, so that the device counts as free again.

    Args:
        device: The device.
        uuid: Of the file system; another one is left alone.

    Returns:
        Whether it was there.

    Raises:
        MissingToolError: if blkid or wipefs is missing.
        RequirementError: if the device is in use.
    """
    blkid = find_program("blkid")
    if blkid is None:
        raise MissingToolError("blkid is missing", hint="apt install util-linux")
    found = subprocess.run(
        [blkid, "-p", "-o", "value", "-s", "UUID", str(device)], check=False, capture_output=True, text=True
    )
    if found.stdout.strip() != uuid:
        return False
    run_program(["wipefs", "--all", "--quiet", str(device)], package="util-linux")
    return True
