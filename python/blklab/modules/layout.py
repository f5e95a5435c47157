"""Proof that headers fit a kernel: its structures as the headers have them, compared with its own.

A module works on the kernel's structures by the offsets of the headers that it was compiled with. Private
headers of another version, or of another configuration, are noticed by nothing: such a module loads, and
corrupts memory. So a probe is compiled against the same headers, with the sizes and offsets of every member
of the structures in question, and of the values of constants, in its data; they are compared with the
kernel's type information.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from blklab.errors import KernelBuildError
from blklab.modules.btf import Member, TypeInformation
from blklab.modules.elf import ObjectFile

PROBE = "blklab_probe"
"""The probe's file, without its ending."""

REQUIRED = (
    "struct request_queue",
    "struct request",
    "struct bio",
    "struct elevator_type",
    "struct elevator_queue",
    "struct elevator_mq_ops",
    "struct blk_mq_hw_ctx",
    "struct blk_mq_ctx",
    "struct blk_mq_tag_set",
    "struct blk_mq_tags",
    "struct gendisk",
    "struct block_device",
)
"""Structures that every scheduler works on: a kernel or headers without one of them do not fit."""

_ALSO = (
    "struct sbitmap",
    "struct sbitmap_queue",
    "struct blk_mq_ops",
    "struct blk_mq_alloc_data",
    "struct queue_limits",
    "struct io_context",
    "struct io_cq",
    "struct blkcg",
    "struct blkcg_gq",
    "struct blkcg_policy",
    "struct blkg_policy_data",
    "struct blkcg_policy_data",
    "struct rq_qos",
    "struct blk_stat_callback",
    "struct task_struct",
)
_NAMED = re.compile(r"\b(struct|union)\s+(\w+)")
_DEFINED = re.compile(r"\b(struct|union)\s+(\w+)\s*\{")
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")
_ERROR = re.compile(rf"{PROBE}\.c:(\d+):(?:\d+:)? (?:fatal )?error: (.*)")
_MOST_LISTED = 6


@dataclass(frozen=True)
class Item:
    """One line of the probe."""

    of: str
    """The structure, with its kind; empty for constants."""
    member: Member | None
    """None for the structure's size, or a constant."""
    constant: str = ""

    @property
    def is_bit_field(self) -> bool:
        """Whether it is compared by the bits that it sets."""
        return self.member is not None and self.member.bits > 0

    @property
    def text(self) -> str:
        """The line, in C."""
        if self.constant:
            return f"(unsigned long long)({self.constant}), 0,"
        if self.member is None:
            return f"sizeof({self.of}), 0,"
        size = "0" if self.member.size_bytes is None else f"sizeof((({self.of} *)0)->{self.member.path})"
        return f"__builtin_offsetof({self.of}, {self.member.path}), {size},"


@dataclass(frozen=True)
class Probe:
    """A probe: its source, and the line of each item."""

    text: str
    items: Mapping[int, Item]
    """By line of the source, in the order of its data."""


@dataclass(frozen=True)
class Proof:
    """The outcome of a comparison."""

    structures: tuple[str, ...]
    """Those that were compared."""
    nr_members: int
    nr_constants: int
    differences: tuple[str, ...]
    """Each as a sentence; none if the headers fit."""

    @property
    def summary(self) -> str:
        """The first differences, or the extent of the agreement."""
        if not self.differences:
            return (
                f"{len(self.structures)} structures with {self.nr_members} members and "
                f"{self.nr_constants} constants are as the kernel has them"
            )
        return shortened(self.differences)


def shortened(reasons: Sequence[str]) -> str:
    """The first reasons of a refusal in one line, with the number of the others."""
    shown = "; ".join(reasons[:_MOST_LISTED])
    more = len(reasons) - _MOST_LISTED
    return f"{shown}; and {more} more" if more > 0 else shown


def prove(
    types: TypeInformation,
    sources: Mapping[str, str],
    headers: Mapping[str, str],
    compile_probe: Callable[[str], tuple[ObjectFile | None, str]],
) -> Proof:
    """Compares the structures and constants that a scheduler may use with those of a kernel.

    Args:
        types: The kernel's type information.
        sources: The scheduler's own files; their structures are not the kernel's.
        headers: The private headers.
        compile_probe: Compiles a probe's source against the headers; returns the object, or None and the
            compiler's messages.

    Raises:
        KernelBuildError: if the headers cannot be compiled at all.
    """
    includes = _includes(sources)
    names = structures_to_compare(types, sources, headers)
    words = {word for text in (*sources.values(), *headers.values()) for word in _WORD.findall(text)}
    constants = sorted(words & types.constants.keys())
    absent: tuple[str, ...] = tuple(
        f"the kernel has no {name}" for name in REQUIRED if not types.layouts(name)
    )
    for _ in range(3):
        probe = write_probe(types, includes, names, constants)
        object_file, messages = compile_probe(probe.text)
        if object_file is not None:
            return _compare(types, probe, object_file, absent)
        errors = _errors(messages, probe)
        if not errors:
            raise KernelBuildError(f"the probe of the headers cannot be compiled: {_first(messages)}")
        # A structure that the scheduler's headers only name, or do not have, cannot be worked on.
        incomplete = {item.of for item, _ in errors if item.member is None and not item.constant}
        missing = [name for name in REQUIRED if name in incomplete]
        wrong = [
            f"{item.of} has no member {item.member.path} in the headers"
            for item, _ in errors
            if item.member is not None and item.of not in incomplete
        ]
        if missing or wrong:
            absent += tuple(f"the headers have no {name}" for name in missing)
            return Proof(tuple(names), len(probe.items), 0, (*absent, *dict.fromkeys(wrong)))
        names = [name for name in names if name not in incomplete]
        unknown = {item.constant for item, _ in errors}
        constants = [name for name in constants if name not in unknown]
    raise KernelBuildError(f"the probe of the headers cannot be compiled: {_first(messages)}")


def structures_to_compare(
    types: TypeInformation, sources: Mapping[str, str], headers: Mapping[str, str]
) -> list[str]:
    """All structures of the kernel that the files name, and those that these contain, by name."""
    own = {f"{kind} {name}" for text in sources.values() for kind, name in _DEFINED.findall(text)}
    named = {
        f"{kind} {name}"
        for text in (*sources.values(), *headers.values())
        for kind, name in _NAMED.findall(text)
    }
    waiting = sorted(({*REQUIRED, *_ALSO} | named) & types.names - own)
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        waiting += [part for layout in types.layouts(name) for part in layout.parts if part not in own]
    return sorted(found)


def write_probe(
    types: TypeInformation, includes: Iterable[str], names: Iterable[str], constants: Iterable[str]
) -> Probe:
    """Writes the source of a probe: one line for each structure, member and constant."""
    lines = [*includes, "#include <linux/module.h>", 'MODULE_LICENSE("GPL");']
    lines.append(
        'const unsigned long long blklab_numbers[] __attribute__((used, section(".blklab.numbers"))) = {'
    )
    items: dict[int, Item] = {}
    fields: list[Item] = []

    def add(item: Item) -> None:
        lines.append(item.text)
        items[len(lines)] = item

    for name in names:
        (layout, *others) = types.layouts(name)
        add(Item(name, None))
        if others:
            continue  # of several by one name only the sizes are compared
        for member in layout.members:
            if member.bits:
                fields.append(Item(name, member))
            else:
                add(Item(name, member))
    for constant in constants:
        add(Item("", None, constant))
    lines.append("};")
    for number, item in enumerate(fields):
        assert item.member is not None  # noqa: S101 - only members are bit fields
        place = f'__attribute__((used, section(".blklab.bits.{number}")))'
        lines.append(f"const {item.of} blklab_bits_{number} {place} = {{ .{item.member.path} = -1 }};")
        items[len(lines)] = item
    return Probe("\n".join(lines) + "\n", items)


def _compare(types: TypeInformation, probe: Probe, object_file: ObjectFile, absent: tuple[str, ...]) -> Proof:
    order = "little" if object_file.little_endian else "big"
    numbers = object_file.sections.get(".blklab.numbers", b"")
    differences = list(absent)
    place = nr_fields = nr_constants = nr_members = 0
    for item in probe.items.values():
        if item.is_bit_field:
            data = object_file.sections.get(f".blklab.bits.{nr_fields}", b"")
            nr_fields += 1
            nr_members += 1
            complaint = _field_complaint(item, data, little_endian=object_file.little_endian)
        else:
            value, size = (
                int.from_bytes(numbers[start : start + 8], order)  # type: ignore[arg-type]
                for start in (place, place + 8)
            )
            place += 16
            nr_constants += bool(item.constant)
            nr_members += item.member is not None
            complaint = _complaint(types, item, value, size)
        if complaint is not None:
            differences.append(complaint)
    structures = tuple(dict.fromkeys(item.of for item in probe.items.values() if item.of))
    return Proof(structures, nr_members, nr_constants, tuple(differences))


def _complaint(types: TypeInformation, item: Item, value: int, size: int) -> str | None:
    if item.constant:
        allowed = {one % (1 << 64) for one in types.constants[item.constant]}
        return (
            None
            if value in allowed
            else f"{item.constant} is {value} in the headers, {min(allowed)} in the kernel"
        )
    if item.member is None:
        sizes = {layout.size_bytes for layout in types.layouts(item.of)}
        return (
            None
            if value in sizes
            else f"{item.of} has {value} bytes in the headers, {min(sizes)} in the kernel"
        )
    member = item.member
    name = f"{item.of.split()[1]}.{member.path}"
    if value * 8 != member.offset_bits:
        return f"{name} is at byte {value} in the headers, {member.offset_bits // 8} in the kernel"
    if member.size_bytes is not None and size != member.size_bytes:
        return f"{name} has {size} bytes in the headers, {member.size_bytes} in the kernel"
    return None


def _field_complaint(item: Item, data: bytes, *, little_endian: bool) -> str | None:
    """Compares the bits that a bit field sets when all of its own are 1."""
    assert item.member is not None  # noqa: S101 - only members are bit fields
    member = item.member
    bits = [
        8 * place + bit
        for place, byte in enumerate(data)
        for bit in range(8)
        if byte >> (bit if little_endian else 7 - bit) & 1
    ]
    wanted = [*range(member.offset_bits, member.offset_bits + member.bits)]
    if bits == wanted:
        return None
    name = f"{item.of.split()[1]}.{member.path}"
    there = f"bits {bits[0]} to {bits[-1]}" if bits else "no bits"
    return f"{name} has {there} in the headers, bits {wanted[0]} to {wanted[-1]} in the kernel"


def _includes(sources: Mapping[str, str]) -> list[str]:
    """The headers that the scheduler's files include, but for those that define trace points."""
    lines = [
        line.strip()
        for text in sources.values()
        for line in re.findall(r"^\s*#\s*include\s+[<\"][^>\"]+[>\"]", text, re.MULTILINE)
    ]
    return [line for line in dict.fromkeys(lines) if "trace" not in line]


def _errors(messages: str, probe: Probe) -> list[tuple[Item, str]]:
    found = []
    for match in _ERROR.finditer(messages):
        item = probe.items.get(int(match[1]))
        if item is not None:
            found.append((item, match[2]))
    return found


def _first(messages: str) -> str:
    lines = [line.strip() for line in messages.splitlines() if "error" in line.lower() or "***" in line]
    return next(iter(lines), "no reason given")


__all__ = [
    "PROBE",
    "REQUIRED",
    "Item",
    "Probe",
    "Proof",
    "prove",
    "shortened",
    "structures_to_compare",
    "write_probe",
]
