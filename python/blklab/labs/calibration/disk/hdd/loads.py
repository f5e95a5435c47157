"""The loads that tell what a disk with an arm does, each at addresses chosen for one figure.

* Jumps back and forth between two small parts of the disk: a seek over one distance, and a wait of up to a
  revolution, since the place within a part is drawn.
* Steps of one length with and without a pause: the disk turns on during the pause, so the waits differ by
  whole revolutions less the pause.
* Reads in order, at the beginning and at the end: sectors on a track, and at its end the switch to the next.
* The same little part again and again: the memory and the interface.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from blklab.labs.calibration.disk.placed_loads import LoadSteps, Pauses, PlacedLoad, short_size

MIB = 1 << 20
_ALIGNMENT = MIB
JUMPS = (
    1 / 16_384,
    1 / 4096,
    1 / 1024,
    1 / 256,
    1 / 64,
    1 / 32,
    1 / 16,
    1 / 8,
    3 / 16,
    1 / 4,
    3 / 8,
    1 / 2,
    5 / 8,
    3 / 4,
    7 / 8,
    31 / 32,
)
"""Distances as parts of the disk."""
_JUMP_PART = 16 * MIB
_STEP = 9 * MIB
"""Longer than disks read ahead, and so short that both loads of a pair stay where tracks are alike."""
_STEPS = tuple(_STEP + 330 * 1024 * number for number in range(9))
_PAUSES_US = (29_000, 37_000, 45_000)
"""In turn: a wait that is off by the switch of a track is off by another part of a revolution after each."""
SEQUENTIAL_KIB = 64
HIT_KIB = (4, 64)
_SEQUENTIAL_BYTES = 1 << 30


@dataclass(frozen=True)
class Jump:
    """Single commands that go from one part to another and back."""

    distance_bytes: int
    part_bytes: int
    load: PlacedLoad

    @property
    def near_bytes(self) -> int:
        """Where the first part begins; the other follows at the distance."""
        return self.load.offset_bytes


def jump(part: float, space_bytes: int, *, readwrite: str = "randread") -> Jump:
    """A jump over a part (0 to 1) of the space, near its end."""
    distance = max(2 * _ALIGNMENT, int(part * space_bytes) // _ALIGNMENT * _ALIGNMENT)
    part_bytes = min(_JUMP_PART, distance // 2)
    end = space_bytes // _ALIGNMENT * _ALIGNMENT
    distance = min(distance, end - part_bytes)
    size = distance + part_bytes
    kind = "jump" if readwrite == "randread" else "writejump"
    load = PlacedLoad(
        name=f"{kind}-4k-over-{short_size(distance)}",
        readwrite=readwrite,
        block_kib=4,
        depth=1,
        offset_bytes=end - size,
        size_bytes=size,
        steps=LoadSteps(part_bytes, distance),
    )
    return Jump(distance, part_bytes, load)


def jumps(space_bytes: int) -> list[Jump]:
    """Jumps over all distances; on a small disk the shortest are the same."""
    by_name: dict[str, Jump] = {}
    for part in JUMPS:
        one = jump(part, space_bytes)
        by_name.setdefault(one.load.name, one)
    return list(by_name.values())


@dataclass(frozen=True)
class SeekTurn:
    """Two loads that step alike, without and with a pause."""

    direct: PlacedLoad
    paused: PlacedLoad
    pause_us: int


def turns(space_bytes: int) -> list[SeekTurn]:
    """Steps of different lengths."""
    offset = space_bytes // 8 // _ALIGNMENT * _ALIGNMENT

    def stepping(step: int, pauses: Pauses | None) -> PlacedLoad:
        return PlacedLoad(
            name=f"step-4k-by-{short_size(step)}{'-paused' if pauses else ''}",
            readwrite="read",
            block_kib=4,
            depth=1,
            offset_bytes=offset,
            size_bytes=space_bytes // 2 // _ALIGNMENT * _ALIGNMENT,
            steps=LoadSteps(4096, step),
            pauses=pauses,
        )

    return [
        SeekTurn(stepping(step, None), stepping(step, Pauses(1, pause_us)), pause_us)
        for step, pause_us in zip(_STEPS, itertools.cycle(_PAUSES_US), strict=False)
    ]


def in_order(part: float, space_bytes: int) -> PlacedLoad:
    """Reads in order from a part of the space on."""
    size = min(_SEQUENTIAL_BYTES, space_bytes // 64 // _ALIGNMENT * _ALIGNMENT)
    offset = min(int(part * space_bytes), space_bytes - size) // _ALIGNMENT * _ALIGNMENT
    return PlacedLoad(
        name=f"read-{SEQUENTIAL_KIB}k-at-{100 * part:.0f}",
        readwrite="read",
        block_kib=SEQUENTIAL_KIB,
        depth=1,
        offset_bytes=offset,
        size_bytes=size,
    )


def again(block_kib: int) -> PlacedLoad:
    """Reads of a part so small that it stays in the memory."""
    size = max(4 * block_kib * 1024 // 2, 64 * 1024)
    return PlacedLoad(
        name=f"again-{block_kib}k",
        readwrite="randread",
        block_kib=block_kib,
        depth=1,
        offset_bytes=0,
        size_bytes=size,
        least_ramp_us=300_000,
    )


def in_turn(places: int, space_bytes: int, single_us: float) -> PlacedLoad:
    """The same places in turn: they are all in the memory, or each has left it when its turn comes."""
    step = min(64 * MIB, space_bytes // (2 * places) // _ALIGNMENT * _ALIGNMENT)
    size = places * step
    end = space_bytes // _ALIGNMENT * _ALIGNMENT
    return PlacedLoad(
        name=f"in-turn-4k-{places}",
        readwrite="read",
        block_kib=4,
        depth=1,
        offset_bytes=end - size,
        size_bytes=size,
        steps=LoadSteps(4096, step),
        least_ramp_us=round(2 * places * single_us),
    )


def ahead(step_kib: int, space_bytes: int, pause_us: int) -> PlacedLoad:
    """Single reads a step apart, with pauses in which the disk may read on."""
    return PlacedLoad(
        name=f"ahead-4k-by-{step_kib}k-paused-{pause_us}us",
        readwrite="read",
        block_kib=4,
        depth=1,
        offset_bytes=0,
        size_bytes=space_bytes // 4 // _ALIGNMENT * _ALIGNMENT,
        steps=LoadSteps(4096, step_kib * 1024),
        pauses=Pauses(1, pause_us),
    )


def burst(*, block_kib: int, count: int, ordered: bool, space_bytes: int, pause_us: int) -> PlacedLoad:
    """Writes in bursts with pauses in which the memory empties."""
    order = "write" if ordered else "randwrite"
    return PlacedLoad(
        name=f"burst-{order}-{block_kib}k-{count}",
        readwrite=order,
        block_kib=block_kib,
        depth=1,
        offset_bytes=0,
        size_bytes=space_bytes // 2 // _ALIGNMENT * _ALIGNMENT,
        pauses=Pauses(count, pause_us),
        least_ramp_us=pause_us,
    )


def spread_load(
    readwrite: str, block_kib: int, depth: int, space_bytes: int, *, part: float = 1.0, at: float = 0.0
) -> PlacedLoad:
    """Random or ordered commands over a part of the space."""
    size = int(part * space_bytes) // _ALIGNMENT * _ALIGNMENT
    offset = int(at * space_bytes) // _ALIGNMENT * _ALIGNMENT
    where = "" if part == 1.0 else f"-{100 * part:.0f}pc-at-{100 * at:.0f}"
    return PlacedLoad(
        name=f"{readwrite}-{block_kib}k-qd{depth}{where}",
        readwrite=readwrite,
        block_kib=block_kib,
        depth=depth,
        offset_bytes=offset,
        size_bytes=size,
    )


def holdouts(space_bytes: int, *, writes: bool) -> list[PlacedLoad]:
    """Loads that no figure is fitted to; chosen before anything was fitted."""
    reads = [
        spread_load("randread", 4, 1, space_bytes),
        spread_load("randread", 8, 4, space_bytes),
        spread_load("randread", 16, 32, space_bytes),
        spread_load("randread", 64, 2, space_bytes, part=0.3, at=0.1),
        spread_load("randread", 4, 8, space_bytes, part=0.05, at=0.6),
        spread_load("read", 128, 2, space_bytes, part=0.02, at=0.35),
        spread_load("read", 256, 4, space_bytes, part=0.02, at=0.75),
    ]
    if not writes:
        return reads
    return [
        *reads,
        spread_load("randwrite", 4, 1, space_bytes),
        spread_load("randwrite", 16, 8, space_bytes, part=0.5, at=0.2),
        spread_load("write", 128, 2, space_bytes, part=0.02, at=0.5),
        spread_load("randrw", 8, 8, space_bytes),
        spread_load("randrw", 4, 2, space_bytes, part=0.2, at=0.4),
    ]
