"""The programs that a kernel is built with."""

from __future__ import annotations

import os
import shutil
import subprocess

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
"""Programs that every build runs, and the Debian packages that hold them."""

PATCH_TOOL = {"patch": "patch"}

UNPACK_TOOLS = {
    ".xz": {"xz": "xz-utils"},
    ".gz": {"gzip": "gzip"},
    ".bz2": {"bzip2": "bzip2"},
    ".zst": {"zstd": "zstd"},
}
"""By the ending of an archive's name, what tar needs to read it."""


def require_tools(*more: dict[str, str]) -> None:
    """Makes sure that everything is there that a build runs, before it begins.

    Args:
        more: Programs besides those that every build needs, each with its Debian package.

    Raises:
        MissingToolError: naming every program that is missing and its package.
    """
    wanted = dict(_BUILD_TOOLS)
    for tools in more:
        wanted |= tools
    missing = {program: package for program, package in wanted.items() if shutil.which(program) is None}
    if missing:
        raise MissingToolError(
            f"a kernel cannot be built without {', '.join(missing)}",
            hint=f"install them (Debian: sudo apt-get install {' '.join(sorted(set(missing.values())))})",
        )
    if not _has_c_library():
        raise MissingToolError(
            "a kernel cannot be built: gcc finds no headers of the C library",
            hint="install them (Debian: sudo apt-get install libc6-dev)",
        )


def compiler_identity() -> str:
    """What decides, besides the source, about the code that comes out: versions of compiler and linker."""
    return f"{_first_line('gcc', '--version')}; {_first_line('ld', '--version')}"


def build_environment() -> dict[str, str]:
    """The environment for a build: nothing of the person's that could change the result.

    A ``make`` that called us, an ``ARCH`` or ``KCFLAGS`` in a developer's shell, or a language for messages
    would otherwise find its way in. Names and times are fixed, so that the same source gives the same bytes.
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
