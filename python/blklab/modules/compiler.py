"""The compiler that a kernel was built with, or one so near that its modules fit."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass

from blklab.errors import MissingToolError
from blklab.modules.headers import KernelHeaders

_VERSION = re.compile(r"\b(\d+)\.(\d+)(?:\.(\d+))?")


@dataclass(frozen=True)
class Compiler:
    """A compiler, with the variables that name it to make."""

    make_variables: tuple[str, ...]
    program: str
    text: str
    """As it names itself."""
    note: str = ""
    """In which way it is not the kernel's; empty if it is."""


def find_compiler(headers: KernelHeaders) -> Compiler:
    """Finds the kernel's compiler.

    The same compiler in another minor version is taken with a note; another major version is not, because
    structures may then be laid out differently and code may call what the kernel does not have.

    Raises:
        MissingToolError: if it is not installed.
    """
    wanted = headers.compiler
    clang = "clang" in wanted
    kind = "clang" if clang else "gcc"
    major, minor = _numbers(wanted)
    candidates = [f"{kind}-{major}", kind] if major else [kind]
    near: Compiler | None = None
    for program in candidates:
        text = _first_line(program)
        if not text or ("clang" in text) != clang:
            continue
        if clang:
            suffix = program.removeprefix("clang")
            variables: tuple[str, ...] = (f"LLVM={suffix or '1'}",)
        else:
            variables = (f"CC={program}",)
        if not wanted or _same(text, wanted):
            return Compiler(variables, program, text)
        if _numbers(text)[0] == major and near is None:
            there = ".".join(str(part) for part in _numbers(text))
            note = f"the kernel was built with {kind} {major}.{minor}, the module with {there}"
            near = Compiler(variables, program, text, "" if _numbers(text) == (major, minor) else note)
    if near is not None:
        return near
    package = f"{kind}-{major}" if major else kind
    raise MissingToolError(
        f"the kernel's compiler is missing: {wanted or kind}",
        hint=f"install it (Debian: sudo apt-get install {package}{', lld and llvm' if clang else ''})",
    )


def _numbers(text: str) -> tuple[int, int]:
    """Major and minor version; the last number in the text is the upstream one with gcc."""
    matches = _VERSION.findall(text)
    if not matches:
        return 0, 0
    found = matches[0] if "clang" in text else matches[-1]
    return int(found[0]), int(found[1])


def _same(text: str, wanted: str) -> bool:
    """The program's own name may differ: ``gcc-12 (Debian …) 12.2.0`` is ``gcc (Debian …) 12.2.0``."""
    return text.partition(" ")[2] == wanted.partition(" ")[2]


def _first_line(program: str) -> str:
    if shutil.which(program) is None:
        return ""
    answer = subprocess.run(
        [program, "--version"], capture_output=True, check=False, text=True, env={**os.environ, "LC_ALL": "C"}
    )
    return next(iter(answer.stdout.splitlines()), "").strip()
