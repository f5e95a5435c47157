"""Small recordings that stand for more than any memory holds, made as a writer of the format would."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Callable

_MAGIC = b"blklab record\n" + struct.pack("<H", 3)
_ROWS = 1 << 16
_BLOCK_BYTES = 128 << 10
"""The most that a block of zstd may have."""

Part = tuple[bytes, int]
"""Bytes, and how often they come."""


def _zstd(*parts: Part) -> bytes:
    """A frame of zstd (RFC 8878): of a byte that is repeated it has the number, other bytes as they are."""
    blocks: list[tuple[int, int, bytes]] = []
    for some, times in parts:
        if len(some) == 1 and times > 1:
            sizes = [_BLOCK_BYTES] * (times // _BLOCK_BYTES) + [times % _BLOCK_BYTES]
            blocks += [(1, size, some) for size in sizes if size]
        else:
            whole = some * times
            pieces = [whole[at : at + _BLOCK_BYTES] for at in range(0, len(whole), _BLOCK_BYTES)]
            blocks += [(0, len(piece), piece) for piece in pieces]
    out = struct.pack("<IBB", 0xFD2FB528, 0, 7 << 3)
    for number, (kind, size, contents) in enumerate(blocks):
        is_last = number == len(blocks) - 1
        out += (is_last | kind << 1 | size << 3).to_bytes(3, "little") + contents
    return out


def _block(kind: bytes, *parts: Part) -> bytes:
    """A block of the file format."""
    stored, raw_bytes = _zstd(*parts), sum(len(some) * times for some, times in parts)
    head = kind + struct.pack("<II", len(stored), raw_bytes)
    return head + struct.pack("<I", zlib.crc32(stored, zlib.crc32(head))) + stored


def _varint(number: int) -> bytes:
    out = b""
    while number >= 0x80:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def _file(*blocks: bytes) -> bytes:
    return _MAGIC + _block(b"FACT", (b"{}", 1)) + b"".join(blocks)


def full_of_ios() -> bytes:
    """98 million reads of nothing at sector 0, all at once, in some 300 KB."""
    rows = _varint(_ROWS)
    # A queueing at 0 has the code 1; 0 is never. The processors and segments may be left out.
    columns: list[Part] = [(rows, 1), (rows, 1), (b"\1", _ROWS)]
    for _ in range(16):
        columns += [(rows, 1), (b"\0", _ROWS)]
    return _file(_block(b"IOS ", *columns) * 1500)


def full_of_tasks() -> bytes:
    """98 million exits of task 1, whose command has number 1."""
    tasks = _block(b"TASK", (_varint(_ROWS), 1), (b"\1", 5 * _ROWS))
    return _file(_block(b"NAME", (b"\1x", 1)), tasks * 1500)


def full_of_groups() -> bytes:
    """Control groups without a name: 7 MB of JSON in each of 30 blocks."""
    groups = b"[" + b"{}," * 2_300_000 + b"{}]"
    return gzip.compress(_file(_block(b"CGRP", (groups, 1)) * 30))


def full_of_facts() -> bytes:
    """Devices without a name."""
    devices = b'{"devices":[' + b"{}," * 5_000_000 + b"{}]}"
    return gzip.compress(_MAGIC + _block(b"FACT", (devices, 1)))


def compressed_twice() -> bytes:
    """`full_of_ios` once more: 3 KB."""
    return gzip.compress(full_of_ios())


def full_of_lines() -> bytes:
    """An MSR trace of one I/O and 1.2 billion empty lines."""
    return _zstd((b"128166372003061629,hm,1,Read,0,512,1\n", 1), (b"\n", 1_200_000_000))


BOMBS: dict[str, Callable[[], bytes]] = {
    made.__name__: made
    for made in (full_of_ios, full_of_tasks, full_of_facts, compressed_twice, full_of_lines)
}
"""Those that are refused."""
