"""Draws devices at random."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True)
class DrawnDevice:
    """A device, and the properties on which the rest of its cell depends."""

    text: str
    """The device as in a target after ``sim:``."""
    io_ns: int
    """Approximate time of an I/O of 4 KiB."""
    depth: int
    """Number of commands that it takes at once."""


_PROFILES = {
    # Approximate time of an I/O of 4 KiB in microseconds, and number of commands at once.
    "hdd-7200": (4000, 32),
    "sas-15k": (2500, 128),
    "ssd-sata": (15, 32),
    "nvme-tlc": (6, 1023),
    "optane": (2, 1023),
    "virtio-network": (20, 64),
    "emmc": (60, 32),
    "sd-card": (500, 1),
}
_LIMITED = ("hdd-7200", "sas-15k", "ssd-sata")
_DEEP = ("nvme-tlc", "optane")
_DEEPEST = 128
"""A queue of a thousand would need more memory than a small guest has."""


def draw_device(draw: random.Random) -> DrawnDevice:
    """Draws a device of fixed latency or one of the profiles."""
    if draw.random() < 0.4:
        depth = draw.choice((1, 2, 4, 8, 32))
        latency_us = draw.choice((50, 100, 200, 1000, 4000))
        rotational = draw.choice((0, 0, 1))
        text = f"fixed,depth={depth},latency={latency_us}us,jitter={latency_us // 10}us"
        return DrawnDevice(f"{text},rotational={rotational}", latency_us * 1000 // min(depth, 8), depth)
    name = draw.choice(sorted(_PROFILES))
    io_us, depth = _PROFILES[name]
    limit: int | None = draw.choice((None, 1, 4, 16)) if name in _LIMITED else None
    limit = _DEEPEST if name in _DEEP else limit
    text = name + (f",queue_depth={limit}" if limit else "")
    return DrawnDevice(text, io_us * 1000, limit or depth)
