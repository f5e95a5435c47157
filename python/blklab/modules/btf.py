"""A kernel's type information (BTF): structures with the places of their members, and constants.

Source: Documentation/bpf/btf.rst, Linux 6.12. The kernel gives its own in ``/sys/kernel/btf/vmlinux``; a
kernel's program (``vmlinux``) has it in its section ``.BTF``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from blklab.errors import FormatError, reason_of
from blklab.modules.elf import is_object_file, read_object_file

_MAGIC = 0xEB9F
_INT, _PTR, _ARRAY, _STRUCT, _UNION, _ENUM, _FWD, _TYPEDEF = range(1, 9)
_VOLATILE, _CONST, _RESTRICT, _FUNC, _FUNC_PROTO, _VAR, _DATASEC, _FLOAT, _DECL_TAG = range(9, 18)
_TYPE_TAG, _ENUM64 = 18, 19
_TRANSPARENT = {_TYPEDEF, _VOLATILE, _CONST, _RESTRICT, _TYPE_TAG}
_TAIL_BYTES = {_INT: 4, _ARRAY: 12, _VAR: 4, _DECL_TAG: 4}
_BYTES_EACH = {_STRUCT: 12, _UNION: 12, _ENUM: 8, _FUNC_PROTO: 8, _DATASEC: 12, _ENUM64: 12}
_LONGEST_PATH = 12
"""Levels of nested members without a type name; more would be a loop in damaged data."""


@dataclass(frozen=True)
class Member:
    """A member of a structure, or of an unnamed one within it."""

    path: str
    """As in C, from the structure: ``rq_flags``, ``rb.rb_left``, ``words[0].depth``."""
    offset_bits: int
    size_bytes: int | None
    """None where C has no size: bit fields and arrays without a length."""
    bits: int = 0
    """The width of a bit field; 0 for other members."""


@dataclass(frozen=True)
class StructLayout:
    """A structure or union as the kernel has it."""

    name: str
    """With its kind, as in C: ``struct request``."""
    size_bytes: int
    members: tuple[Member, ...]
    parts: frozenset[str]
    """The named structures that it contains as a whole."""


class TypeInformation:
    """The types of a kernel."""

    def __init__(self, data: bytes) -> None:
        """Indexes the types.

        Args:
            data: BTF, as in ``/sys/kernel/btf/vmlinux``.

        Raises:
            ValueError: if it is not complete BTF of a known version.
        """
        self._order = "<" if data[:2] == _MAGIC.to_bytes(2, "little") else ">"
        try:
            magic, version, _, header_bytes = struct.unpack_from(f"{self._order}HBBI", data)
            type_start, type_bytes, text_start, text_bytes = struct.unpack_from(f"{self._order}4I", data, 8)
        except struct.error as error:
            raise ValueError("the type information is cut short") from error
        if magic != _MAGIC or version != 1:
            raise ValueError("this is not BTF of version 1")
        self._types = data[header_bytes + type_start :][:type_bytes]
        self._texts = data[header_bytes + text_start :][:text_bytes]
        if len(self._types) < type_bytes or len(self._texts) < text_bytes:
            raise ValueError("the type information is cut short")
        self._starts = self._index()
        self._sizes: dict[int, int | None] = {}

    def layouts(self, name: str) -> tuple[StructLayout, ...]:
        """The structures of a name, for example ``struct request``.

        None if the kernel has no such structure; several if it has different ones of that name.
        """
        return tuple(self._layout(name, number) for number in self._composites.get(name, ()))

    @property
    def names(self) -> frozenset[str]:
        """The names of all structures and unions, with their kind."""
        return frozenset(self._composites)

    @cached_property
    def constants(self) -> dict[str, frozenset[int]]:
        """The enumerators, with their values: one each unless enumerations share a name."""
        found: dict[str, set[int]] = {}
        for number in range(1, len(self._starts)):
            kind, length, signed, _ = self._info(number)
            if kind not in (_ENUM, _ENUM64):
                continue
            start = self._starts[number] + 12
            for place in range(start, start + length * _BYTES_EACH[kind], _BYTES_EACH[kind]):
                if kind == _ENUM:
                    name, value = struct.unpack_from(
                        f"{self._order}I{'i' if signed else 'I'}", self._types, place
                    )
                else:
                    name, low, high = struct.unpack_from(f"{self._order}3I", self._types, place)
                    value = high << 32 | low
                    value -= (value >> 63 << 64) if signed else 0
                found.setdefault(self._text(name), set()).add(value)
        return {name: frozenset(values) for name, values in found.items()}

    @cached_property
    def _composites(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for number in range(1, len(self._starts)):
            name, info = struct.unpack_from(f"{self._order}2I", self._types, self._starts[number])
            kind = info >> 24 & 0x1F
            if kind in (_STRUCT, _UNION) and name:
                word = "struct" if kind == _STRUCT else "union"
                found.setdefault(f"{word} {self._text(name)}", []).append(number)
        return found

    def _index(self) -> list[int]:
        starts, place = [0], 0  # type 0 is void
        unpack = struct.Struct(f"{self._order}I").unpack_from
        while place < len(self._types):
            starts.append(place)
            try:
                (info,) = unpack(self._types, place + 4)
            except struct.error as error:
                raise ValueError("the type information is cut short") from error
            kind = info >> 24 & 0x1F
            if not 0 < kind <= _ENUM64:
                raise ValueError(f"the type information has a type of the unknown kind {kind}")
            place += 12 + _TAIL_BYTES.get(kind, 0) + _BYTES_EACH.get(kind, 0) * (info & 0xFFFF)
        return starts

    def _info(self, number: int) -> tuple[int, int, bool, int]:
        """Kind, number of parts, flag, and size or type."""
        _, info, rest = struct.unpack_from(f"{self._order}3I", self._types, self._starts[number])
        return info >> 24 & 0x1F, info & 0xFFFF, bool(info >> 31), rest

    def _text(self, start: int) -> str:
        return self._texts[start : self._texts.index(b"\0", start)].decode(errors="replace")

    def _name(self, number: int) -> str:
        (name,) = struct.unpack_from(f"{self._order}I", self._types, self._starts[number])
        return self._text(name)

    def _bare(self, number: int) -> int:
        """A type without typedefs and qualifiers."""
        while number:
            kind, _, _, rest = self._info(number)
            if kind not in _TRANSPARENT:
                break
            number = rest
        return number

    def _array(self, number: int) -> tuple[int, int]:
        """The type of the elements, and their number."""
        element, _, length = struct.unpack_from(f"{self._order}3I", self._types, self._starts[number] + 12)
        return element, length

    def _size(self, number: int) -> int | None:
        """The size of a type in bytes; None if it has none."""
        if number not in self._sizes:
            self._sizes[number] = self._size_of_bare(self._bare(number))
        return self._sizes[number]

    def _size_of_bare(self, number: int) -> int | None:
        if not number:
            return None
        kind, _, _, rest = self._info(number)
        if kind == _PTR:
            return 8
        if kind == _ARRAY:
            element, length = self._array(number)
            each = self._size(element)
            return each * length if each is not None and length else None
        return rest if kind in (_INT, _STRUCT, _UNION, _ENUM, _ENUM64, _FLOAT) else None

    def _layout(self, name: str, number: int) -> StructLayout:
        parts: set[str] = set()
        members = tuple(self._members(number, "", 0, parts, 0))
        return StructLayout(name, self._info(number)[3], members, frozenset(parts))

    def _members(
        self, number: int, prefix: str, base_bits: int, parts: set[str], depth: int
    ) -> Iterator[Member]:
        if depth > _LONGEST_PATH:
            raise ValueError("the type information nests structures without end")
        _, length, has_bit_fields, _ = self._info(number)
        start = self._starts[number] + 12
        for place in range(start, start + 12 * length, 12):
            name, of_type, offset = struct.unpack_from(f"{self._order}3I", self._types, place)
            bits = offset >> 24 if has_bit_fields else 0
            offset_bits = base_bits + (offset & 0xFFFFFF if has_bit_fields else offset)
            path = prefix + self._text(name)
            if name:
                size_bytes = None if bits else self._size(of_type)
                yield Member(path, offset_bits, size_bytes, bits)
            yield from self._inside(of_type, path, offset_bits, parts, depth, named=bool(name))

    def _inside(
        self, of_type: int, path: str, offset_bits: int, parts: set[str], depth: int, *, named: bool
    ) -> Iterator[Member]:
        """The members of a member's own type, if that has no name; else notes the name."""
        inner = self._bare(of_type)
        while inner and self._info(inner)[0] == _ARRAY:
            inner, length = self._array(inner)
            inner = self._bare(inner)
            path += "[0]"
            if not length:
                named = True
        if not inner or (kind := self._info(inner)[0]) not in (_STRUCT, _UNION):
            return
        if name := self._name(inner):
            parts.add(f"{'struct' if kind == _STRUCT else 'union'} {name}")
            return
        yield from self._members(inner, f"{path}." if named else path, offset_bits, parts, depth + 1)


def read_type_information(path: Path) -> TypeInformation:
    """Reads the type information of a kernel.

    Args:
        path: BTF itself, or an uncompressed kernel (``vmlinux``).

    Raises:
        FormatError: if it cannot be read or has none.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FormatError(f"the type information {path} cannot be read: {reason_of(error)}") from error
    try:
        if is_object_file(data):
            data = read_object_file(data).sections.get(".BTF", b"")
            if not data:
                raise ValueError("the program has no section .BTF")
        return TypeInformation(data)
    except ValueError as error:
        raise FormatError(
            f"{path} has no type information that blklab can read: {error}",
            hint="name the BTF of the kernel, or its uncompressed program (vmlinux)",
        ) from error
