"""The loads of a flash drive's calibration, each for some of its figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from blklab.labs.calibration.disk.flash.figures import FlashDrive
from blklab.labs.calibration.disk.loads import DiskLoad
from blklab.labs.calibration.disk.placed_loads import LoadSteps, Pauses, PlacedLoad, short_size

Quantity = Literal["mean", "iops"]

KIB, MIB = 1 << 10, 1 << 20
STRIDE_DEPTH = 8
_COPRIME = 3 * 5 * 7
_MOST_STRIDE_MIB = 16
_STRIDES_IN_SPACE = 8
SLOT_KIB = 4
LEVELS = 3
"""Pages of a cell, which take different times to read, follow each other on a die."""
SIZES_KIB = (
    *(4, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112),
    *(128, 160, 192, 224, 256, 320, 384, 448, 512, 768, 1024),
)
"""Of single reads: they show units, channels and their speed."""
_WRITE_SIZES_KIB = (4, 16, 64)
_SYNC_SIZES_KIB = (4, 256, 1024, 4096)
_MIXED = (DiskLoad("mixed", 64, 1), DiskLoad("mixed", 64, 8), DiskLoad("mixed", 4, 4))
_DEEP_READS = (DiskLoad("read", 4, 32), DiskLoad("read", 256, 16))
_DEEP_WRITES = ((4, 16), (16, 16))

READ_US = 100_000
WRITE_US = 5_000
"""So short that a buffer takes all of it."""
_OVERWRITE_KIB, _MOST_OVERWRITES = 16, 1 << 20
"""A program unit at least, and far less than an erase block; more on a large drive, for fewer I/Os."""
_SYNC_US, _LARGE_SYNC_US = 1_000_000, 200_000
"""Small writes leave room in the fast cells for longer."""


@dataclass(frozen=True)
class LoadNumber:
    """A number of a load: the mean latency where one command runs at a time, else the rate."""

    load: DiskLoad | PlacedLoad
    quantity: Quantity
    runtime_us: int
    drawn: bool = False
    """Whether chance plays a part: places or directions are drawn."""

    def device(self, drive: FlashDrive) -> str:
        """The drive, with what affects the load."""
        load = self.load
        return drive.device(reads=reads(load), writes=not load.reads_only, syncs=load.syncs)


def reads(load: DiskLoad | PlacedLoad) -> bool:
    """Whether a load reads."""
    if isinstance(load, DiskLoad):
        return load.direction != "write"
    return load.readwrite in {"read", "randread"}


def strided(step_bytes: int, space_bytes: int, *, depth: int = STRIDE_DEPTH) -> PlacedLoad:
    """Reads of 4 KiB, each a step behind the one before."""
    return PlacedLoad(
        name=f"stride-4k-qd{depth}-by-{short_size(step_bytes)}",
        readwrite="read",
        block_kib=SLOT_KIB,
        depth=depth,
        offset_bytes=0,
        size_bytes=max(1, space_bytes // step_bytes) * step_bytes,
        steps=LoadSteps(SLOT_KIB * KIB, step_bytes),
    )


def longest_stride(space_bytes: int) -> int:
    """A multiple of the stripes of all drives whose dies are products of 2, 3, 5 and 7."""
    stride = _COPRIME * MIB
    while stride < _COPRIME * _MOST_STRIDE_MIB * MIB and 2 * stride * _STRIDES_IN_SPACE <= space_bytes:
        stride *= 2
    return stride


def levels(stripe_bytes: int, space_bytes: int) -> list[PlacedLoad]:
    """Single reads of pages of one level each."""
    return [_placed(f"level-{level}", SLOT_KIB, level, stripe_bytes, space_bytes) for level in range(LEVELS)]


def sized(stripe_bytes: int, space_bytes: int, most_kib: int) -> list[PlacedLoad]:
    """Single reads of growing size that begin on the first die, at one level."""
    most_kib = min(most_kib, stripe_bytes // KIB)
    return [
        _placed(f"sized-{size_kib}k", size_kib, 0, stripe_bytes, space_bytes)
        for size_kib in SIZES_KIB
        if size_kib <= most_kib
    ]


def _placed(name: str, block_kib: int, stripe: int, stripe_bytes: int, space_bytes: int) -> PlacedLoad:
    step = LEVELS * stripe_bytes
    offset = stripe * stripe_bytes
    return PlacedLoad(
        name=name,
        readwrite="read",
        block_kib=block_kib,
        depth=1,
        offset_bytes=offset,
        size_bytes=(space_bytes - offset) // step * step,
        steps=LoadSteps(block_kib * KIB, step),
    )


def single_rows(stripe_bytes: int, space_bytes: int, most_kib: int) -> list[LoadNumber]:
    """Single reads and writes."""
    return [
        *(LoadNumber(load, "mean", READ_US) for load in levels(stripe_bytes, space_bytes)),
        *(LoadNumber(load, "mean", READ_US) for load in sized(stripe_bytes, space_bytes, most_kib)),
        *(
            LoadNumber(single_write(block_kib, space_bytes), "mean", WRITE_US)
            for block_kib in _WRITE_SIZES_KIB
        ),
    ]


def single_write(block_kib: int, space_bytes: int) -> PlacedLoad:
    """Single writes from rest, which a buffer takes."""
    return _writes(block_kib, 1, space_bytes)


def other_rows(space_bytes: int, *, flushes: bool) -> list[LoadNumber]:
    """Deep queues, mixtures, and flushes after writes of growing size."""
    syncs = [DiskLoad("write", block_kib, 1, syncs=True) for block_kib in _SYNC_SIZES_KIB] if flushes else []
    return [
        *(LoadNumber(load, "iops", READ_US, drawn=True) for load in _DEEP_READS),
        *(
            LoadNumber(_writes(block_kib, depth, space_bytes), "iops", WRITE_US)
            for block_kib, depth in _DEEP_WRITES
        ),
        *(LoadNumber(load, "iops", 2 * READ_US, drawn=True) for load in _MIXED),
        *(
            LoadNumber(load, "iops", _SYNC_US if load.block_kib == SLOT_KIB else _LARGE_SYNC_US)
            for load in syncs
        ),
    ]


def _writes(block_kib: int, depth: int, space_bytes: int) -> PlacedLoad:
    return _from_rest(f"rested-write-{block_kib}k-qd{depth}", block_kib, depth, space_bytes)


def filling(block_kib: int, depth: int, runtime_us: int, space_bytes: int) -> PlacedLoad:
    """Writes in order on a rested drive for so long, which is part of the name."""
    return _from_rest(f"fill-{block_kib}k-qd{depth}-{runtime_us}us", block_kib, depth, space_bytes)


def overwriting(depth: int, runtime_us: int, space_bytes: int) -> PlacedLoad:
    """Random writes on a rested drive for so long, which is part of the name."""
    block_kib = _OVERWRITE_KIB
    while space_bytes > _MOST_OVERWRITES * block_kib * KIB:
        block_kib *= 2
    name = f"overwrite-{block_kib}k-qd{depth}-{runtime_us}us"
    return _from_rest(name, block_kib, depth, space_bytes, readwrite="randwrite")


def refilling(
    block_kib: int, depth: int, blocks: int, pause_us: int, runtime_us: int, space_bytes: int
) -> PlacedLoad:
    """So many writes in order on a rested drive, a pause, and more of them, for so long in all."""
    name = f"refill-{block_kib}k-qd{depth}-{blocks}-{pause_us}us-{runtime_us}us"
    return _from_rest(name, block_kib, depth, space_bytes, Pauses(blocks, pause_us))


def _from_rest(
    name: str,
    block_kib: int,
    depth: int,
    space_bytes: int,
    pauses: Pauses | None = None,
    readwrite: str = "write",
) -> PlacedLoad:
    return PlacedLoad(
        name=name,
        readwrite=readwrite,
        block_kib=block_kib,
        depth=depth,
        offset_bytes=0,
        size_bytes=space_bytes // MIB * MIB,
        pauses=pauses,
        from_rest=True,
    )
