"""The toolchain: programs that a build needs, and its environment."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping

from blklab.errors import MissingToolError

_BUILD_TOOLS = {
    "make": "make",
    "gcc": "gcc",
    "ld": "binutils",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "tar": "tar",
    "cp": "coreutils",
}
"""Programs that every build runs, and their Debian packages."""

PATCH_TOOL = {"patch": "patch"}

UNPACK_TOOLS = {
    ".xz": {"xz": "xz-utils"},
    ".gz": {"gzip": "gzip"},
    ".bz2": {"bzip2": "bzip2"},
    ".zst": {"zstd": "zstd"},
}
"""Programs that tar needs to read an archive, by the suffix of its name."""


def require_tools(*more: dict[str, str]) -> None:
    """Makes sure, before a build, that all its programs are installed.

    Args:
        more: Programs besides those that every build needs, with their Debian packages.

    Raises:
        MissingToolError: with every missing program and its package.
    """
    wanted = dict(_BUILD_TOOLS)
    for tools in more:
        wanted |= tools
    require_programs("a kernel cannot be built", wanted)
    if not _has_c_library():
        raise MissingToolError(
            "a kernel cannot be built: gcc does not find the headers of the C library",
            hint="install them (Debian: sudo apt-get install libc6-dev)",
        )


def require_programs(failure: str, programs: Mapping[str, str]) -> None:
    """Makes sure that programs are installed.

    Args:
        failure: Begins the message, for example "a kernel cannot be built".
        programs: The programs, with their Debian packages.

    Raises:
        MissingToolError: with every missing program and its package.
    """
    missing = {program: package for program, package in programs.items() if shutil.which(program) is None}
    if missing:
        raise MissingToolError(
            f"{failure} without {', '.join(missing)}",
            hint=f"install them (Debian: sudo apt-get install {' '.join(sorted(set(missing.values())))})",
        )


def compiler_identity() -> str:
    """Versions of compiler and linker, which besides the source determine the code."""
    return f"{_first_line('gcc', '--version')}; {_first_line('ld', '--version')}"


def build_environment() -> dict[str, str]:
    """The environment of a build, without the user's variables that could change the result.

    Otherwise a calling ``make``, an ``ARCH`` or ``KCFLAGS`` in a developer's shell, or the locale would
    affect it. User, host and time are fixed, so that the same source gives the same bytes.
    """
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    return {
        **kept,
        "LC_ALL": "C",
        "KBUILD_BUILD_TIMESTAMP": "1970-01-01",
        "KBUILD_BUILD_USER": "blklab",
        "KBUILD_BUILD_HOST": "blklab",
        "KBUILD_BUILD_VERSION": "1",
    }


def _has_c_library() -> bool:
    test = subprocess.run(
        ["gcc", "-E", "-x", "c", "-"],
        input="#include <stdlib.h>\n",
        capture_output=True,
        check=False,
        text=True,
    )
    return test.returncode == 0


def _first_line(*command: str) -> str:
    result = subprocess.run(
        command, capture_output=True, check=False, text=True, env={**os.environ, "LC_ALL": "C"}
    )
    return next(iter(result.stdout.splitlines()), "unknown").strip()
