"""The figures of a disk with an arm, as the simulator's kind ``hdd`` has them, and its geometry.

How many heads and zones there are cannot be seen from outside. They are assumed, and the figures that are
counted in cylinders follow from them; what a seek over a part of the disk takes does not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

KIND = "hdd"
SECTOR_BYTES = 512
ZONES = 30
"""Assumed: from ten on, the number changes no rate by more than a percent or two."""
SERPENTINE = 128
"""Assumed: tracks on one head before the next head's turn, as in the one layout that is published."""
_USUAL_CYLINDERS = 150_000
_MOST_HEADS = 64
_MS = 1_000_000

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class SeekCurve:
    """Time of a seek over `d` cylinders: near + root x sqrt(d) before `far_from`, far + slope x d after."""

    near_ns: float
    root_ns: float
    far_from: int
    far_ns: float
    slope_ns: float

    def ns(self, distance: Integers, switch_ns: float) -> Floats:
        """Times of seeks; the next cylinder takes `switch_ns`."""
        short = self.near_ns + self.root_ns * np.sqrt(distance)
        least = self.near_ns + self.root_ns * math.sqrt(max(self.far_from - 1, 0))
        long = np.maximum(least, self.far_ns + self.slope_ns * distance)
        times = np.where(distance < self.far_from, short, long)
        return np.where(distance <= 1, distance * switch_ns, times)

    def over_ns(self, distance: int) -> float:
        """Time of one seek over two cylinders at least."""
        return float(self.ns(np.array([max(2, distance)]), 0.0)[0])


@dataclass(frozen=True)
class Memory:
    """The disk's memory."""

    read_ahead: bool
    segments: int
    segment_sectors: int
    write_sectors: int
    """0: writes go through."""
    write_extents: int


@dataclass(frozen=True)
class ArmDisk:
    """All figures."""

    capacity_bytes: int
    queue_depth: int
    revolution_ns: float
    switch_ns: float
    outer_sectors: float
    inner_sectors: float
    curve: SeekCurve
    write_settle_ns: float
    hit_ns: float
    interface_rate: float
    memory: Memory
    starvation_ns: int
    heads: int

    def parameters(self) -> dict[str, int | str]:
        """The profile's keys and values."""
        memory = self.memory
        curve = self.curve
        return {
            "rpm": round(60e9 / self.revolution_ns),
            "heads": self.heads,
            "cylinders": self.geometry.cylinders,
            "zones": ZONES,
            "outer_sectors": self.geometry.outer,
            "inner_sectors": self.geometry.inner,
            "serpentine": SERPENTINE,
            "track_switch": round(self.switch_ns),
            "head_switch": round(self.switch_ns),
            "seek_near": round(curve.near_ns),
            "seek_near_root": round(curve.root_ns),
            "seek_far_from": curve.far_from,
            "seek_far": round(curve.far_ns),
            "seek_far_slope": round(curve.slope_ns),
            "write_settle": round(self.write_settle_ns),
            "queue_depth": self.queue_depth,
            "starvation_limit": self.starvation_ns,
            "cache_segments": memory.segments,
            "segment_sectors": memory.segment_sectors,
            "read_ahead": int(memory.read_ahead),
            "write_cache_sectors": memory.write_sectors,
            "write_cache_extents": memory.write_extents,
            "cache_hit": max(1, round(self.hit_ns)),
            "interface_rate": round(self.interface_rate),
        }

    @property
    def device(self) -> str:
        """The device as in a target."""
        return ",".join([KIND, *(f"{key}={value}" for key, value in self.parameters().items())])

    @property
    def geometry(self) -> Geometry:
        """The places of sectors."""
        return Geometry.of(self.capacity_bytes, self.outer_sectors, self.inner_sectors, self.heads)

    def seek_over_ns(self, part: float) -> float:
        """Time of a seek over a part (0 to 1) of all cylinders."""
        return self.curve.over_ns(round(part * (self.geometry.cylinders - 1)))


@dataclass(frozen=True)
class Geometry:
    """The places of sectors: zones of equal width, tracks in serpentine order."""

    heads: int
    cylinders: int
    outer: int
    inner: int

    @staticmethod
    def of(capacity_bytes: int, outer_sectors: float, inner_sectors: float, heads: int) -> Geometry:
        """The smallest disk of at least this capacity."""
        outer = max(1, round(outer_sectors))
        inner = min(outer, max(1, round(inner_sectors)))
        sectors = sum(_sectors_per_track(outer, inner)) * heads
        cylinders = ZONES * max(1, math.ceil(capacity_bytes / SECTOR_BYTES / sectors))
        return Geometry(heads, cylinders, outer, inner)

    @property
    def zone_sectors(self) -> list[int]:
        """Sectors of each zone."""
        return [
            self.cylinders // ZONES * self.heads * sectors
            for sectors in _sectors_per_track(self.outer, self.inner)
        ]

    def sectors_per_track(self, offset_bytes: int) -> int:
        """Of the track at an address."""
        ends = np.cumsum(self.zone_sectors)
        zone = int(np.searchsorted(ends, offset_bytes // SECTOR_BYTES, side="right"))
        return _sectors_per_track(self.outer, self.inner)[min(zone, ZONES - 1)]

    def cylinders_at(self, offset_bytes: Integers) -> Integers:
        """Cylinders of addresses."""
        sectors = offset_bytes // SECTOR_BYTES
        starts = np.concatenate([[0], np.cumsum(self.zone_sectors)])
        zone = np.clip(np.searchsorted(starts, sectors, side="right") - 1, 0, ZONES - 1)
        per_track = np.array(_sectors_per_track(self.outer, self.inner))[zone]
        wide = self.cylinders // ZONES
        track = np.minimum((sectors - starts[zone]) // per_track, wide * self.heads - 1)
        band = track // (SERPENTINE * self.heads)
        width = np.minimum(SERPENTINE, wide - band * SERPENTINE)
        head, step = np.divmod(track - band * SERPENTINE * self.heads, width)
        step = np.where(head % 2 == 0, step, width - 1 - step)
        return np.asarray(zone * wide + band * SERPENTINE + step, dtype=np.int64)


def _sectors_per_track(outer: int, inner: int) -> list[int]:
    """Of each zone, as the simulator spaces them."""
    return [outer - (outer - inner) * zone // (ZONES - 1) for zone in range(ZONES)]


def assumed_heads(capacity_bytes: int, outer_sectors: float, inner_sectors: float) -> int:
    """So many that the disk has a usual number of cylinders."""
    tracks = capacity_bytes / SECTOR_BYTES / ((outer_sectors + inner_sectors) / 2)
    return min(_MOST_HEADS, max(1, round(tracks / _USUAL_CYLINDERS)))
