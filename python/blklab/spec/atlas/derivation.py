"""From the coefficients of io.cost's model to a profile of kind ``flash``.

The six coefficients are rates at saturation: bytes a second of large reads and writes, and I/Os of 4 KiB a
second, sequential and random. That is all that is known of a drive beside its size and, if vrates were swept,
the least median latency of reads at any vrate. The rest is assumed.

Known, and met by the profile:

* A command of 4 KiB takes the link ``command + 4096 / link_rate``. That is one over the coefficient, so four
  coefficients give ``command``, ``random_read_command``, ``write_command`` and ``random_write_command``.
  io.cost, too, takes an I/O for a constant and a part in proportion to its size.
* Large reads are as fast as the link: ``rbps`` gives ``link_read_rate``.
* Large writes are as fast as the dies program, erasing included: ``wbps`` gives ``program``.
* One read at a time takes the least median latency at any vrate; what the medium, the channel and the link do
  not take is ``interface``. Where no vrates were swept it takes 80 us.

A drive that moves more with 4 KiB than with large I/Os (reads of some Micron models, writes of two others)
contradicts the linear model: link or dies are as fast as the geometric mean of the two, and both are missed.

Assumed:

* A die for each 4 GB (a power of two, at most 256), in 8 channels of 1.2 GB/s, with pages of 16 KiB and read
  times of ``nvme-tlc``, whose sources are named there. Dies of that size are a plane each. With them the
  programs of a 980 PRO take 1.8 ms, and its fitted profile has 2 ms; with a die for each 16 GB they took a
  quarter of that, and 99th percentiles of reads beside writes were predicted 8.6 times too low in the median
  of 33 drives, where they are off by 2.8 times now.
* 7 % spare space; no SLC cache beyond what ``wbps`` includes.
* The link takes writes half as fast again as the medium, so that the dies are the limit.
* The controller holds 256 commands, buffers 4 MiB, and a read waits for the program under way on its die: as
  the profile ``samsung-980-pro`` has it, which was fitted to measurements of mixed loads.
* That profile's ``fetch`` is left out: it is one time for all commands, and the coefficients give four, of
  the link.
* So are its pauses for garbage collection (``collection_commands``, ``collection_stops``): their length
  follows from the spare space, which no coefficient tells. With 7 % a 980 PRO full of random data would stop
  writes for 540 ms at a time, where the fitted profile stops them for 60 ms.
* The limits of 4 KiB writes are the controller's, not garbage collection's: sequential and random writes were
  measured one after the other on a test file of 16 GB, on drives with room.
* SATA drives are those whose names say so: one queue of 32 commands, and a flush that is not queued.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

_BLOCK_BYTES = 4096
_LARGE_BYTES = 1 << 20
_CHANNELS = 8
_CHANNEL_RATE = 1_200_000_000
_DIE_BYTES = 4_000_000_000
_PAGE_BYTES = 16_384
_BUFFER_BYTES = 4 << 20
_PAGES_OF_A_BLOCK = 768
_ERASE_NS = 3_000_000
_READ_NS = (29_800, 35_800, 41_800)
_USUAL_READ_NS = 80_000
_LEAST_INTERFACE_NS = 1_000
_SATA_MODELS = ("Samsung SSD 860", "Samsung SSD 870")


@dataclass(frozen=True)
class MeasuredFigures:
    """The figures of a drive."""

    model: str
    capacity_bytes: int
    coefficients: Mapping[str, int]
    read_ns: int | None
    """The least median latency of reads at any vrate; None if unknown."""


def is_sata(model: str) -> bool:
    """True for a drive behind SATA, by its name."""
    return model in _SATA_MODELS


def parameters(measured: MeasuredFigures) -> dict[str, int | str]:
    """The parameters of kind ``flash`` that follow from a drive's figures, and those assumed."""
    read = _read_side(measured.coefficients)
    write = _write_side(measured)
    usual_ns = read["random_read_command"] + round(_BLOCK_BYTES * 1e9 / read["link_read_rate"])
    usual_ns += _READ_NS[1] + round(_BLOCK_BYTES * 1e9 / _CHANNEL_RATE)
    wanted_ns = _USUAL_READ_NS if measured.read_ns is None else measured.read_ns
    found: dict[str, int | str] = {
        "capacity": measured.capacity_bytes - measured.capacity_bytes % _BLOCK_BYTES
    }
    found |= read | write
    found["interface"] = max(_LEAST_INTERFACE_NS, wanted_ns - usual_ns)
    found |= {"channels": min(_CHANNELS, _dies(measured.capacity_bytes)), "channel_rate": _CHANNEL_RATE}
    found |= {"dies": _dies(measured.capacity_bytes), "planes": 1, "page": _PAGE_BYTES}
    found |= {"erase_block": _PAGES_OF_A_BLOCK * _PAGE_BYTES, "erase": _ERASE_NS}
    found |= dict(zip(("read_low", "read_middle", "read_high"), _READ_NS, strict=True))
    found |= {"suspend": 20_000, "hold": "program", "slots": 256, "buffer": _BUFFER_BYTES, "slc_cache": 0}
    found |= {"spare_permille": 70, "condition": "sequential", "flush_drains": 1}
    if is_sata(measured.model):
        return found | {
            "queue_depth": 32,
            "hw_queues": 1,
            "max_sectors_kb": 32_767,
            "flush_exclusive": 1,
            "flush": 3_200_000,
        }
    return found | {
        "queue_depth": 1023,
        "hw_queues": 128,
        "max_sectors_kb": 2048,
        "flush_exclusive": 0,
        "flush": 0,
    }


def _read_side(coefficients: Mapping[str, int]) -> dict[str, int]:
    """The link's speed and the times of reads on it."""
    sequential, random = coefficients["rseqiops"], coefficients["rrandiops"]
    small_ns, large_ns = 1e9 / sequential, _LARGE_BYTES * 1e9 / coefficients["rbps"]
    byte_ns = (large_ns - small_ns) / (_LARGE_BYTES - _BLOCK_BYTES)
    most_small = _BLOCK_BYTES * max(sequential, random)
    if byte_ns * most_small > 1e9:
        byte_ns = 1e9 / math.sqrt(coefficients["rbps"] * most_small)
    return {
        "link_read_rate": round(1e9 / byte_ns),
        "command": _beside_data_ns(sequential, byte_ns),
        "random_read_command": _beside_data_ns(random, byte_ns),
    }


def _write_side(measured: MeasuredFigures) -> dict[str, int]:
    """The dies' speed, a faster link, and the times of writes on it."""
    coefficients = measured.coefficients
    sequential, random = coefficients["wseqiops"], coefficients["wrandiops"]
    fastest = _BLOCK_BYTES * max(sequential, random)
    link = max(coefficients["rbps"], 3 * coefficients["wbps"] // 2, fastest)
    medium = coefficients["wbps"]
    if fastest > medium:
        medium = round(math.sqrt(medium * fastest))
    page_ns = _dies(measured.capacity_bytes) * _PAGE_BYTES * 1e9 / medium
    return {
        "link_write_rate": link,
        "write_command": _beside_data_ns(sequential, 1e9 / link),
        "random_write_command": _beside_data_ns(random, 1e9 / link),
        "program": round(page_ns - _ERASE_NS / _PAGES_OF_A_BLOCK),
    }


def _beside_data_ns(iops: int, byte_ns: float) -> int:
    """The time of a command of 4 KiB beside its data, at a rate; at least 1, as 0 means another default."""
    return max(1, round(1e9 / iops - _BLOCK_BYTES * byte_ns))


def _dies(capacity_bytes: int) -> int:
    """A power of two, with no more dies than the buffer keeps busy."""
    return min(_BUFFER_BYTES // _PAGE_BYTES, 1 << max(2, round(math.log2(capacity_bytes / _DIE_BYTES))))
