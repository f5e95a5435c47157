"""Needs of a program of this machine: its interpreter, its dynamic loader and its libraries."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from blklab.errors import MissingToolError, RequirementError
from blklab.guests.programs import libraries

_ELF = b"\x7fELF"
_X86_64 = (2, 1, 62)
"""64 bits, little-endian, ``EM_X86_64``."""
_HEADER_BYTES = 64
_SEGMENT_BYTES = 56
_INTERPRETER = 3
"""``PT_INTERP`` (elf(5)): the segment with the path of the dynamic loader."""
_LONGEST_LINE = 256
"""Of a script's first line (``BINPRM_BUF_SIZE``, include/uapi/linux/binfmts.h, Linux 6.1)."""


@dataclass(frozen=True)
class Executable:
    """A file that the kernel can run or the dynamic loader can load."""

    kind: Literal["elf", "script"]
    interpreter: Path | None
    """The dynamic loader of a program, the program of a script; None for a static program or a library."""


def read_executable(path: Path) -> Executable | None:
    """Reads a file's first bytes.

    Returns:
        None if it is neither a program nor a script.

    Raises:
        RequirementError: if it cannot be read, or is a program for another kind of processor.
    """
    try:
        with path.open("rb") as file:
            head = file.read(_LONGEST_LINE)
            if head.startswith(_ELF):
                return Executable("elf", _interpreter_of_elf(path, file))
    except OSError as error:
        raise RequirementError(f"{path} cannot be read: {error.strerror}") from error
    if not head.startswith(b"#!"):
        return None
    words = head[2:].split(b"\n")[0].decode(errors="replace").split()
    return Executable("script", Path(words[0])) if words else None


def needs_of(path: Path) -> list[Path]:
    """All that a program, library or script needs besides itself, in the order of need.

    Args:
        path: A file; one that is no executable needs nothing.

    Raises:
        MissingToolError: if an interpreter or a library is missing.
        RequirementError: as for `read_executable`.
    """
    executable = read_executable(path)
    if executable is None:
        return []
    if executable.interpreter is not None and not executable.interpreter.is_file():
        raise MissingToolError(
            f"{path} needs the interpreter {executable.interpreter}, which is missing",
            hint="install it, or name another program",
        )
    loader = [] if executable.interpreter is None else [executable.interpreter]
    if executable.kind == "script":
        return [*loader, *(need for interpreter in loader for need in needs_of(interpreter))]
    # Libraries have no loader of their own; ldd lists what they need all the same.
    found = libraries(str(path)) if loader or ".so" in path.name else []
    return [*loader, *(Path(library) for library in found)]


def _interpreter_of_elf(path: Path, file: BinaryIO) -> Path | None:
    file.seek(0)
    header = file.read(_HEADER_BYTES)
    if len(header) < _HEADER_BYTES or (header[4], header[5], _half(header, 18)) != _X86_64:
        raise RequirementError(
            f"{path} is a program for another kind of processor, and guests run those of x86-64"
        )
    file.seek(struct.unpack_from("<Q", header, 32)[0])
    size, count = _half(header, 54), _half(header, 56)
    table = file.read(size * count)
    for start in range(0, len(table) - _SEGMENT_BYTES + 1, max(size, _SEGMENT_BYTES)):
        kind, _, place, _, _, length = struct.unpack_from("<IIQQQQ", table, start)
        if kind == _INTERPRETER:
            file.seek(place)
            return Path(file.read(length).rstrip(b"\0").decode(errors="replace"))
    return None


def _half(header: bytes, place: int) -> int:
    value: int = struct.unpack_from("<H", header, place)[0]
    return value
