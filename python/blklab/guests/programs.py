"""Programs of this machine for a guest, with their libraries."""

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
"""The Debian packages of the programs that guests may need."""
_SETTINGS = {"mkfs.ext4": ("/etc/mke2fs.conf",)}
"""Configuration files that a program reads if they exist."""


def program_files(names: Iterable[str]) -> dict[str, Path]:
    """The files of programs and their libraries, by their path in the guest.

    A program goes to ``bin/NAME``, a library to the path where the loader looks for it.

    Raises:
        MissingToolError: if a program or one of its libraries is missing.
    """
    files: dict[str, Path] = {}
    for name in names:
        path = find_program(name)
        if path is None:
            package = PACKAGES.get(name, name)
            raise MissingToolError(f"{name} is not installed", hint=f"apt install {package}")
        files[f"bin/{name}"] = Path(path).resolve()
        files |= {file.lstrip("/"): Path(file) for file in _SETTINGS.get(name, ()) if Path(file).is_file()}
        files |= {library.lstrip("/"): Path(library).resolve() for library in libraries(path)}
    return files


def libraries(path: str) -> list[str]:
    """A program's libraries and the loader, as the loader resolves them (ldd).

    Raises:
        MissingToolError: if one is missing.
    """
    try:
        answer = subprocess.run(
            ["ldd", path], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False,
            env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingToolError(f"ldd cannot list the libraries of {path}: {error}") from error
    if missing := _MISSING.findall(answer.stdout):
        raise MissingToolError(f"{path} lacks the library {missing[0]}")
    return _LIBRARY.findall(answer.stdout)  # a static program has none
