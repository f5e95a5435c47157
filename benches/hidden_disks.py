"""Modelled disks whose figures are drawn at random, for benches/disk_calibration.py."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping

from blklab.labs.calibration.disk.flash.spare import USABLE_SPARE, usable_spare_permille
from blklab.labs.calibration.disk.hdd.figure_list import SEEK_PARTS
from blklab.labs.calibration.disk.hdd.figures import SeekCurve

Truth = dict[str, str | int]
"""The parameters of a disk, and what follows from them."""

_MS = 1_000_000
_PAGE_BYTES = 16_384
_FEWEST_SUPERBLOCKS = 120
_WRITE_BYTES = 256 * 1024
"""Of the loads that fill write buffers."""


def _between(draw: random.Random, low: float, high: float) -> float:
    """By the logarithm."""
    return math.exp(draw.uniform(math.log(low), math.log(high)))


def virtual_disk(draw: random.Random) -> Truth:
    """A disk between fast flash and a slow network."""
    read_ns = _between(draw, 30_000, 2_000_000)
    write_ns = read_ns * _between(draw, 0.3, 3)
    parallel = round(_between(draw, 1, 64))
    share = draw.uniform(0.05, 0.5)
    flushes = draw.random() < 0.7
    return {
        "read_latency": round(read_ns),
        "read_spread": round(draw.uniform(50, 500)),
        "read_command": round(share * read_ns / parallel),
        "read_rate": round(_between(draw, 1e8, 3e9)),
        "write_latency": round(write_ns),
        "write_spread": round(draw.uniform(50, 500)),
        "write_command": round(share * write_ns / parallel),
        "write_rate": round(_between(draw, 1e8, 3e9)),
        "parallel": parallel,
        "placement": draw.choice(("any", "random")),
        "full_duplex": draw.choice((0, 1)),
        "flush": round(_between(draw, 20_000, 5_000_000)) if flushes else 0,
        "queue_depth": draw.choice((32, 64, 128, 256)),
    }


def batched_disk(draw: random.Random) -> Truth:
    """A virtual disk whose host takes commands in batches."""
    truth = virtual_disk(draw)
    read_ns, write_ns = (round(_between(draw, 20_000, 500_000)) for _ in range(2))
    return truth | {
        "read_latency": read_ns,
        "read_command": round(read_ns * draw.uniform(0.05, 0.5)),
        "write_latency": write_ns,
        "write_command": round(write_ns * draw.uniform(0.05, 0.5)),
        "read_rate": round(_between(draw, 5e8, 5e9)),
        "write_rate": round(_between(draw, 5e8, 5e9)),
        "parallel": 1,
        "placement": "batch",
        "batch_size": draw.choice((0, 4, 8, 16, 32)),
        "mixed_latency": draw.choice(("longer", "sum")),
    }


def limited_disk(draw: random.Random) -> Truth:
    """A virtual disk with a limit of I/Os, of bytes, or both, and bursts of some seconds."""
    truth = virtual_disk(draw) | {
        "read_latency": round(_between(draw, 100_000, 500_000)),
        "write_latency": round(_between(draw, 100_000, 500_000)),
        "parallel": round(_between(draw, 8, 32)),
        "read_command": round(_between(draw, 2_000, 15_000)),
        "write_command": round(_between(draw, 2_000, 15_000)),
        "read_rate": round(_between(draw, 5e8, 3e9)),
        "write_rate": round(_between(draw, 5e8, 3e9)),
    }
    kinds = draw.choice((("io",), ("rate",), ("io", "rate")))
    if "io" in kinds:
        limit = round(_between(draw, 2000, 8000))
        truth |= {"io_limit": limit, "io_burst": round(limit * _between(draw, 1, 10))}
    if "rate" in kinds:
        limit = round(_between(draw, 4e7, 2e8))
        truth |= {"rate_limit": limit, "rate_burst": round(limit * _between(draw, 1, 5))}
    return truth


def buffered_disk(draw: random.Random) -> Truth:
    """A virtual disk with a write buffer that long writes fill."""
    truth = virtual_disk(draw) | {
        "write_latency": round(_between(draw, 20_000, 100_000)),
        "parallel": round(_between(draw, 8, 32)),
        "write_command": round(_between(draw, 500, 5_000)),
        "write_rate": round(_between(draw, 5e8, 3e9)),
    }
    drain_rate = round(int(truth["write_rate"]) * draw.uniform(0.1, 0.6))
    buffer = round(drain_rate * _between(draw, 0.2, 4))
    return truth | {"write_buffer": buffer, "write_drain_rate": drain_rate}


def flash_disk(draw: random.Random) -> Truth:
    """A drive with a cache of fast cells that writes of some seconds fill.

    Its erase blocks and spare space, which no collection of garbage shows, are the usual ones.
    """
    dies = draw.choice((16, 32, 64))
    planes = draw.choice((1, 2))
    program_ns = round(_between(draw, 0.8, 2.5) * _MS)
    rate = dies * planes * 16_384 * 1_000_000_000 / program_ns
    slc_program_ns = round(program_ns * draw.uniform(0.15, 0.3))
    slc_cache = round(rate * _between(draw, 0.5, 4))
    buffer = round(_between(draw, 8, 64)) << 20
    read_low = round(_between(draw, 30_000, 50_000))
    read_middle = round(read_low * draw.uniform(1.1, 1.4))
    link_read_rate = round(_between(draw, 5e8, 7e9))
    link_write_rate = round(link_read_rate * draw.uniform(0.7, 1))
    return {
        "dies": dies,
        "planes": planes,
        "page": 16_384,
        "erase_block": planes * (12 << 20),
        "program": program_ns,
        "slc_program": slc_program_ns,
        "slc_cache": slc_cache,
        "buffer": buffer,
        "read_low": read_low,
        "read_middle": read_middle,
        "read_high": round(read_middle * draw.uniform(1.05, 1.3)),
        "channels": draw.choice((4, 8, 16)),
        "channel_rate": round(_between(draw, 6e8, 2e9)),
        "link_read_rate": link_read_rate,
        "link_write_rate": link_write_rate,
        "command": round(_between(draw, 300, 4000)),
        "interface": round(_between(draw, 5_000, 30_000)),
        "suspend": round(_between(draw, 3_000, 60_000)),
        "flush": draw.choice((0, round(_between(draw, 20_000, 5_000_000)))),
        "flush_drains": draw.choice((0, 1, 1, 1)),
        "queue_depth": draw.choice((32, 256, 1023)),
        "slc_fold_rate": round(_between(draw, 1e8, 1e9)),
    }


def fronted_disk(draw: random.Random) -> Truth:
    """A flash drive with a front end: slots that writes can take all of, and programs that reads wait for."""
    truth = flash_disk(draw)
    slots = draw.choice((0, *(round(_between(draw, 16, 256)) for _ in range(3))))
    return truth | {
        "queue_depth": draw.choice((256, 1023)),
        "slots": slots,
        "arbitration_burst": draw.choice((1, 1, 2, 4, 8)) if slots else 1,
        "hold": draw.choice(("nothing", "program")),
    }


def fetching_disk(draw: random.Random) -> Truth:
    """A drive with a front end whose controller takes commands one after the other.

    Its link is fast, and costs a command less time than the controller. Whether dies, slots or the controller
    limit small reads is left to the draw.
    """
    truth = fronted_disk(draw)
    fetch_ns = round(_between(draw, 800, 4000))
    link_read_rate = round(_between(draw, 2e9, 7e9))
    return truth | {
        "fetch": fetch_ns,
        "command": round(draw.uniform(0, 0.5) * fetch_ns),
        "link_read_rate": link_read_rate,
        "link_write_rate": round(link_read_rate * draw.uniform(0.7, 1)),
    }


def collecting_disk(draw: random.Random) -> Truth:
    """A small flash drive, whose cells are all programmed in less than half a minute.

    Drives for computers take several minutes at least, so no calibration of ten minutes sees them collect.
    """
    truth = flash_disk(draw)
    dies, program_ns = draw.choice((8, 16)), int(truth["program"])
    stripe_bytes = dies * _PAGE_BYTES
    rate = stripe_bytes * 1_000_000_000 / program_ns
    stripes = round(rate * draw.uniform(20, 30) / stripe_bytes)
    pages = draw.choice([pages for pages in (16, 32, 64, 128) if _FEWEST_SUPERBLOCKS * pages < stripes])
    return truth | {
        "capacity": stripes * stripe_bytes,
        "spare_permille": round(_between(draw, 50, 280)),
        "dies": dies,
        "planes": 1,
        "channels": draw.choice((4, 8)),
        "erase_block": pages * _PAGE_BYTES,
        # As large a part of the time of programming as with blocks of 768 pages and 2 to 6 ms.
        "erase": round(_between(draw, 2, 6) * _MS * pages / 768),
        "slc_cache": round(rate * _between(draw, 0.5, 4)),
    }


def worn_disk(draw: random.Random) -> Truth:
    """A flash drive that was overwritten at random until it was steady: its data lie anywhere."""
    return flash_disk(draw) | {
        "spare_permille": round(_between(draw, 50, 280)),
        "erase": round(_between(draw, 2, 6) * _MS),
    }


def arm_disk(draw: random.Random) -> Truth:
    """A disk with an arm, from a small one of a laptop to a large one of a server."""
    cylinders = round(_between(draw, 60_000, 400_000))
    outer = round(_between(draw, 800, 4000))
    near_ns = draw.uniform(0.4, 1.6) * _MS
    far_from = round(cylinders * draw.uniform(0.1, 0.5))
    middle_ns = near_ns + draw.uniform(2, 5) * _MS
    root_ns = (middle_ns - near_ns) / math.sqrt(far_from)
    # A line that goes on where the root ends, about as steep.
    slope_ns = max(1, round(draw.uniform(0.7, 1.3) * root_ns / (2 * math.sqrt(far_from))))
    caches = draw.random() < 0.6
    extents = round(_between(draw, 8, 64))
    segment = 8 * round(_between(draw, 32, 512))
    switch_ns = round(draw.uniform(0.3, 1.0) * min(near_ns, _MS))
    return {
        "rpm": draw.choice((4200, 5400, 5900, 7200, 10_000, 15_000)),
        "heads": draw.choice((2, 4, 6, 8, 10, 16)),
        "cylinders": cylinders,
        "zones": draw.choice((12, 20, 30, 45, 60)),
        "outer_sectors": outer,
        "inner_sectors": round(outer * draw.uniform(0.4, 0.7)),
        "track_switch": switch_ns,
        "head_switch": round(switch_ns * draw.uniform(0.8, 1.5)),
        "seek_near": round(near_ns),
        "seek_near_root": round(root_ns),
        "seek_far_from": far_from,
        "seek_far": round(middle_ns - slope_ns * far_from),
        "seek_far_slope": slope_ns,
        "write_settle": round(draw.uniform(0.1, 0.8) * _MS),
        "queue_depth": draw.choice((16, 32, 64, 128)),
        "starvation_limit": round(_between(draw, 0.3, 5) * 1000) * _MS,
        "cache_segments": round(_between(draw, 4, 128)),
        "segment_sectors": segment,
        "write_cache_sectors": round(0.7 * extents * segment) if caches else 0,
        "write_cache_extents": extents,
        "cache_hit": round(_between(draw, 30_000, 150_000)),
        "interface_rate": round(_between(draw, 1.5e8, 6e8)),
    }


def seeks_of(truth: Mapping[str, str | int]) -> Truth:
    """The times of seeks that a disk with an arm takes over parts of its cylinders."""

    def of(key: str) -> int:
        return int(truth[key])

    curve = SeekCurve(
        of("seek_near"), of("seek_near_root"), of("seek_far_from"), of("seek_far"), of("seek_far_slope")
    )
    last = of("cylinders") - 1
    return {f"seek_{name}": round(curve.over_ns(round(part * last))) for part, name in SEEK_PARTS.items()}


KINDS: dict[str, Callable[[random.Random], Truth]] = {
    "virtual": virtual_disk,
    "batched": batched_disk,
    "limited": limited_disk,
    "buffered": buffered_disk,
    "flash": flash_disk,
    "hdd": arm_disk,
    "collecting": collecting_disk,
    "worn": worn_disk,
    "fronted": fronted_disk,
    "fetching": fetching_disk,
}
"""Sorts of disks; batched, limited and buffered ones are of kind virtual, worn ones are fitted as such."""
_MODELS = {"hdd": "hdd"} | dict.fromkeys(("flash", "collecting", "worn", "fronted", "fetching"), "flash")
SEEDS = {"fronted": 1161, "fetching": 1252}
"""Of kinds that have one of their own, named before any of its disks was looked at; else 1."""

_IN_TURN = ("flash", "hdd", "virtual", "limited", "buffered")
ALL = "all"
"""These in turn, those with the most figures first. Batched ones would change what older seeds draw."""


def drawn_disks(kind: str, number: int, seed: int) -> list[tuple[str, str, Truth]]:
    """So many disks of a kind, or of all: the kind of each, the disk as in a target, and its figures."""
    kinds = _IN_TURN if kind == ALL else (kind,)
    each = [(kinds[index % len(kinds)], 1000 * seed + index) for index in range(number)]
    return [(one, *drawn_disk(one, drawn)) for one, drawn in each]


def drawn_disk(kind: str, seed: int) -> tuple[str, Truth]:
    """A disk of a kind: as in a target after ``sim:``, and its figures."""
    truth = KINDS[kind](random.Random(seed))  # noqa: S311 - not for secrets
    device = ",".join([_MODELS.get(kind, "virtual"), *(f"{key}={value}" for key, value in truth.items())])
    if kind == "worn":
        # Fitted as another kind, with figures of its own.
        return f"{device},condition=random", {}
    return device, truth | _derived(kind, truth)


def kind_to_find(kind: str) -> str:
    """The kind of profile that suits such a disk."""
    return "virtual" if kind == "worn" else _MODELS.get(kind, "virtual")


def _flash_link_rate(truth: Truth) -> float:
    """Bytes a second that the link of a flash drive takes of large writes, with its time for each command."""
    return _WRITE_BYTES / (_WRITE_BYTES / int(truth["link_write_rate"]) + int(truth["command"]) / 1e9)


def _derived(kind: str, truth: Truth) -> Truth:
    """Figures of the calibration that follow from those of the disk."""
    if kind == "hdd":
        return seeks_of(truth)
    if kind == "collecting":
        return {USABLE_SPARE: round(usable_spare_permille(truth))}
    if kind in {"flash", "fronted", "fetching"}:
        bytes_at_once = int(truth["dies"]) * int(truth["planes"]) * int(truth["page"])
        drain_rate = 1e9 * bytes_at_once / int(truth["program"])
        # While writes fill the fast cells, no slow ones are programmed; the buffer comes on top.
        fast_rate = min(_flash_link_rate(truth), 1e9 * bytes_at_once / int(truth["slc_program"]))
        if fast_rate < drain_rate:
            return {}
        buffer = int(truth["slc_cache"]) * (1 - drain_rate / fast_rate) + int(truth["buffer"])
        return {"write_drain_rate": round(drain_rate), "write_buffer": round(buffer)}
    return {}
