"""Programs of this machine for a guest, with the libraries that they need."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from blklab.errors import MissingToolError
from blklab.linux.processes.programs import find_program

_LIBRARY = re.compile(r"^\s*(?:\S+ => )?(/\S+) \(0x[0-9a-f]+\)$", re.MULTILINE)
_MISSING = re.compile(r"^\s*(\S+) => not found$", re.MULTILINE)
_TIMEOUT_S = 20

PACKAGES = {"fio": "fio", "mkfs.ext4": "e2fsprogs", "mkfs.xfs": "xfsprogs", "mkfs.btrfs": "btrfs-progs"}
"""Debian's packages of the programs that guests may need."""
_SETTINGS = {"mkfs.ext4": ("/etc/mke2fs.conf",)}
"""Files that a program reads where they are there."""


def program_files(names: Iterable[str]) -> dict[str, Path]:
    """Files of programs and their libraries, by their path in the guest.

    A program goes to ``bin/NAME``, a library to the path at which the loader looks for it.

    Raises:
        MissingToolError: if a program or one of its libraries is not there.
    """
    files: dict[str, Path] = {}
    for name in names:
        path = find_program(name)
        if path is None:
            package = PACKAGES.get(name, name)
            raise MissingToolError(f"{name} is not installed", hint=f"apt install {package}")
        files[f"bin/{name}"] = Path(path).resolve()
        files |= {file.lstrip("/"): Path(file) for file in _SETTINGS.get(name, ()) if Path(file).is_file()}
        files |= {library.lstrip("/"): Path(library).resolve() for library in _libraries(path)}
    return files


def _libraries(path: str) -> list[str]:
    """Libraries of a program and the loader, as the loader itself resolves them (ldd)."""
    try:
        answer = subprocess.run(
            ["ldd", path], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False,
            env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingToolError(f"the libraries of {path} cannot be found out (ldd): {error}") from error
    if missing := _MISSING.findall(answer.stdout):
        raise MissingToolError(f"{path} lacks the library {missing[0]}")
    return _LIBRARY.findall(answer.stdout)  # a static program has none
