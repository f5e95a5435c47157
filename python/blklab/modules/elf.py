"""Sections of object files: as much of ELF as the layout probe and the kernel's type information need.

Source: elf(5); 64-bit files only, which is all that the kernels in question are.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

_MAGIC = b"\x7fELF"
_CLASS_64 = 2
_BIG_ENDIAN = 2
_NO_BITS = 8
"""Sections without bytes in the file (`SHT_NOBITS`)."""


class ObjectFile(NamedTuple):
    """The named sections of an object file."""

    sections: dict[str, bytes]
    little_endian: bool


def is_object_file(data: bytes) -> bool:
    """Whether data begin as an ELF file does."""
    return data.startswith(_MAGIC)


def read_object_file(data: bytes) -> ObjectFile:
    """Reads the sections of an object file.

    Raises:
        ValueError: if it is not a complete ELF file of 64 bits.
    """
    if not is_object_file(data) or len(data) < 64 or data[4] != _CLASS_64:
        raise ValueError("not an ELF file of 64 bits")
    little_endian = data[5] != _BIG_ENDIAN
    order = "<" if little_endian else ">"
    try:
        (table,) = struct.unpack_from(f"{order}Q", data, 40)
        entry_bytes, nr_sections, of_names = struct.unpack_from(f"{order}3H", data, 58)
        headers = [
            struct.unpack_from(f"{order}2I4Q", data, table + number * entry_bytes)
            for number in range(nr_sections)
        ]
        names = _content(data, headers[of_names])
        sections = {}
        for header in headers:
            end = names.index(b"\0", header[0])
            sections[names[header[0] : end].decode()] = _content(data, header)
    except (struct.error, IndexError, ValueError) as error:
        raise ValueError("the ELF file is damaged") from error
    return ObjectFile(sections, little_endian)


def _content(data: bytes, header: tuple[int, ...]) -> bytes:
    _, kind, _, _, offset, size = header
    return b"" if kind == _NO_BITS else data[offset : offset + size]
